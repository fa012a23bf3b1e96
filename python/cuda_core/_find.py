"""Finds NVRTC and the CUDA headers in wheels, conda or a toolkit, through cuda-pathfinder.

Called by the extension when a program is compiled for the first time: cuda-pathfinder is not imported before that."""

import functools
import os


@functools.cache
def nvrtc_path() -> str | None:
    """The file of the NVRTC library; None where none is found, so that the loader decides."""
    try:
        from cuda import pathfinder
    except ImportError:
        return None
    try:
        return pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except (pathfinder.DynamicLibNotFoundError, RuntimeError):
        return None


@functools.cache
def include_directories() -> tuple[str, ...]:
    """Directories that make `#include <cuda_fp16.h>` and `#include <cuda/std/atomic>` work; may be empty."""
    try:
        from cuda import pathfinder
    except ImportError:
        return ()
    found: list[str] = []
    toolkit = _header_directory(pathfinder, "cudart")
    if toolkit is not None:
        found.append(toolkit)
        # The C++ library beside these headers fits them; another one may be of another release.
        beside = os.path.join(toolkit, "cccl")
        if os.path.isdir(beside):
            return (*found, beside)
    library = _header_directory(pathfinder, "cccl")
    if library is not None:
        found.append(library)
    return tuple(found)


def _header_directory(pathfinder: object, name: str) -> str | None:
    find = getattr(pathfinder, "find_nvidia_header_directory", None)
    if find is None:  # cuda-pathfinder older than 1.3
        return None
    try:
        directory = find(name)
    except (ValueError, RuntimeError):
        return None
    return directory if directory is not None and os.path.isdir(directory) else None
