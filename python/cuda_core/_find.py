"""Finds NVRTC and the CUDA headers in wheels, conda or a toolkit, through cuda-pathfinder.

Called by the extension when a program is compiled for the first time: cuda-pathfinder is not imported before that."""

import importlib
import os
from types import ModuleType


def nvrtc_path() -> str | None:
    """The file of the NVRTC library; None where none is found, so that the loader decides."""
    pathfinder = _pathfinder()
    if pathfinder is None:
        return None
    try:
        path: str | None = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except RuntimeError:
        return None
    return path


def include_directories() -> tuple[str, ...]:
    """Directories that make `#include <cuda_fp16.h>` and `#include <cuda/std/atomic>` work; may be empty."""
    found: list[str] = []
    toolkit = _header_directory("cudart")
    if toolkit is not None:
        found.append(toolkit)
        # The C++ library beside these headers fits them; another one may be of another release.
        beside = os.path.join(toolkit, "cccl")
        if os.path.isdir(beside):
            return (*found, beside)
    library = _header_directory("cccl")
    if library is not None:
        found.append(library)
    return tuple(found)


def _pathfinder() -> ModuleType | None:
    try:
        return importlib.import_module("cuda.pathfinder")
    except ImportError:
        return None


def _header_directory(name: str) -> str | None:
    pathfinder = _pathfinder()
    if pathfinder is None:
        return None
    try:
        directory: str | None = pathfinder.find_nvidia_header_directory(name)
    except RuntimeError:
        return None
    return directory if directory is not None and os.path.isdir(directory) else None
