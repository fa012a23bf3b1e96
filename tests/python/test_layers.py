"""tools/check_layers.py sees each kind of break of the layers, and none in the tree as it is."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "check_layers.py"

SOUND = {
    "core/cuda_core.h": "int cc_count(void);\n",
    "core/internal.h": "int cc__count(void);\n",
    "core/device.c": '#include "internal.h"\n#include "cuda_core.h"\n#include <cuda.h>\n/* as cuInit( does */\n',
    "bindings/module.h": "#include <Python.h>\n",
    "bindings/device.c": '#include "module.h"\n#include "cuda_core.h"\nconst char *text = "cuInit() failed";\n',
    "emulator/api.h": "int em_enter(void);\n",
    "emulator/exec/run.h": "int em_run(void);\n",
    "emulator/exec/run.c": '#include "run.h"\n#include "../api.h"\nint cuInit(unsigned flags) { return em_enter(); }\n',
    "emulator/ptx/parse.c": '#include "parse.h"\n',
    "emulator/ptx/parse.h": "",
    "python/cuda_core/__init__.py": "import os\nfrom cuda_core import _core\nfrom . import _options\n",
    "tests/core/test_device.c": '#include "internal.h"\n#include "emulator/api.h"\n',
    "meson.build": "project('x')\n",
}


def check(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, timeout=60)


def test_tree():
    found = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, "layers: faults 0\n")


def test_sound(tmp_path):
    found = check(tmp_path, SOUND)
    assert (found.returncode, found.stdout) == (0, "layers: faults 0\n")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("core/device.c", "\n#include <Python.h>\n", "core/device.c:2: includes Python.h: core is plain C"),
        ("core/device.c", "void f(void) { PyErr_Clear(); }\n", "core/device.c:1: uses PyErr_Clear: core is plain C"),
        ("core/device.c", '#include "module.h"\n', "core/device.c:1: includes module.h of bindings/"),
        ("core/device.c", '#include "../bindings/module.h"\n', "includes ../bindings/module.h of bindings/"),
        ("core/device.c", '#include "emulator/api.h"\n', "includes emulator/api.h of emulator/"),
        ("core/device.c", "int x(void) { return em_enter(); }\n", "uses em_enter: core reaches the emulator only as a"),
        ("emulator/exec/run.c", '#include "cuda_core.h"\n', "includes cuda_core.h of core/"),
        ("emulator/exec/run.c", "#include <Python.h>\n", "includes Python.h: the emulator is plain C"),
        ("emulator/exec/run.c", "int x(void) { return cc_count(); }\n", "uses cc_count: the emulator is a driver"),
        ("emulator/ptx/parse.c", '#include "../exec/run.h"\n', "the front end knows neither memory nor execution"),
        ("bindings/device.c", '#include "internal.h"\n', "includes internal.h: bindings use cuda_core.h only"),
        ("bindings/device.c", '#include "../core/internal.h"\n', "bindings use cuda_core.h only"),
        ("bindings/device.c", '#include "emulator/api.h"\n', "includes emulator/api.h of emulator/"),
        ("bindings/device.c", "int x(void) { return cuInit (0); }\n", "uses cuInit: bindings call core"),
        ("bindings/device.c", "int x(void) { return nvrtcVersion(0); }\n", "uses nvrtcVersion: bindings call core"),
        ("bindings/device.c", 'void *x(void) { return dlopen("a", 0); }\n', "uses dlopen: bindings call core"),
        ("bindings/device.c", "int x(void) { return cc__count(); }\n", "uses cc__count: what begins with cc__"),
        ("python/cuda_core/_find.py", "import numpy\n", "_find.py:1: imports numpy: only the standard library"),
        ("python/cuda_core/_find.py", "def f():\n    from torch import cuda\n", "_find.py:2: imports torch: only"),
        ("python/cuda_core/_find.py", "import ctypes.util\n", "imports ctypes: the package calls C through bindings/"),
        ("core/meson.build", "cc.find_library('cuda')\n", "core/meson.build: links a CUDA library"),
        ("core/long.c", "\n" * 1001, "core/long.c: more than 1000 lines"),
        ("emulator/exec/run.c", "/* TO" + "DO */\n", "emulator/exec/run.c:1: TO" + "DO: unfinished"),
        ("tests/core/test_device.c", "\n assert" + "(0);\n", "tests/core/test_device.c:2: assert" + "(0): unfinished"),
    ],
)
def test_break(tmp_path, file, text, said):
    found = check(tmp_path, {**SOUND, file: text})
    assert found.returncode == 1
    assert said in found.stdout
    assert found.stdout.splitlines()[-1] == "layers: faults 1"
