"""Imports what a target needs: the package, whose extension is linked into the fuzzer, and the target itself."""

import gc
import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings


class _Linked(importlib.abc.MetaPathFinder):
    """Finds the extension. (Python 3.10 has no built-in modules inside packages.)"""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "cuda_core._core":
            return None
        return importlib.machinery.ModuleSpec(fullname, importlib.machinery.BuiltinImporter, origin="built-in")


def target(name):
    """run() of the target's module, which runs the input that is set; what is alive now is alive for good."""
    sys.meta_path.insert(0, _Linked())
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(200)
    run = importlib.import_module(name).run
    gc.collect()
    gc.freeze()
    gc.disable()
    return run
