"""CUDA for Python programmers: devices, streams, memory, programs, kernels and launches as Python objects.

Importing this opens no CUDA library: the driver is opened when a Device is first asked for, the compiler when a
Program is first compiled."""

from cuda_core import _core
from cuda_core._core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    ClosedError,
    CompileError,
    ComputeCapability,
    Context,
    CUDAError,
    Device,
    DeviceMemoryResource,
    DeviceProperties,
    EmulatedDeviceWarning,
    Event,
    Host,
    InvalidValueError,
    Kernel,
    KernelNotFoundError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LibraryNotFoundError,
    ManagedBuffer,
    ManagedMemoryResource,
    MaxPotentialBlockSizeOccupancyResult,
    MemoryResource,
    NotSupportedError,
    ObjectCode,
    OutOfMemoryError,
    ParamInfo,
    PinnedMemoryResource,
    Program,
    Stream,
    VirtualMemoryResource,
    launch,
    trace_launches,
)

__version__ = _core.__version__

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "Buffer",
    "CUDAError",
    "ClosedError",
    "CompileError",
    "ComputeCapability",
    "Context",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DeviceProperties",
    "EmulatedDeviceWarning",
    "Event",
    "EventOptions",
    "Host",
    "InvalidValueError",
    "Kernel",
    "KernelNotFoundError",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "LibraryNotFoundError",
    "ManagedBuffer",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MaxPotentialBlockSizeOccupancyResult",
    "MemoryResource",
    "NotSupportedError",
    "ObjectCode",
    "OutOfMemoryError",
    "ParamInfo",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Program",
    "ProgramOptions",
    "Stream",
    "StreamOptions",
    "VirtualMemoryResource",
    "VirtualMemoryResourceOptions",
    "__version__",
    "launch",
    "trace_launches",
    "typing",
    "utils",
]

# The dataclasses import what the rest of the package does without: they come at first need.
_OPTIONS = frozenset(
    {
        "DeviceMemoryResourceOptions",
        "EventOptions",
        "ManagedMemoryResourceOptions",
        "PinnedMemoryResourceOptions",
        "ProgramOptions",
        "StreamOptions",
        "VirtualMemoryResourceOptions",
    }
)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _OPTIONS:
        value = getattr(import_module("cuda_core._options"), name)
    elif name in ("typing", "utils"):
        value = import_module(f"cuda_core.{name}")
    else:
        raise AttributeError(f"module 'cuda_core' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
