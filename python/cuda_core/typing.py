"""Types and string enumerations that cuda_core's functions take and return.

A member is the string it stands for: ``"ptx"`` and ``ObjectCodeFormatType.PTX`` are interchangeable."""

import sys
from typing import Protocol, TypeAlias, runtime_checkable

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """What enum.StrEnum is from Python 3.11 on: members that are, and print as, their strings."""

        __str__ = str.__str__
        __format__ = str.__format__


__all__ = [
    "CompilerBackendType",
    "DevicePointerType",
    "IsStreamType",
    "ManagedMemoryLocationType",
    "ObjectCodeFormatType",
    "PCHStatusType",
    "SourceCodeType",
    "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType",
    "VirtualMemoryGranularityType",
    "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
]

DevicePointerType: TypeAlias = int | None
"""An address in device memory; None is the null pointer."""


@runtime_checkable
class IsStreamType(Protocol):
    """A stream of any library: ``__cuda_stream__()`` returns ``(0, address of the CUstream)``."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


class SourceCodeType(StrEnum):
    """What a Program is made of."""

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(StrEnum):
    """What an ObjectCode holds."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"


class CompilerBackendType(StrEnum):
    """What turns a Program into an ObjectCode, or several ObjectCodes into one."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class PCHStatusType(StrEnum):
    """What became of the precompiled header of a compilation."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"


class ManagedMemoryLocationType(StrEnum):
    """What ManagedMemoryResourceOptions.preferred_location is the number of."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


class VirtualMemoryAccessType(StrEnum):
    """What a device may do with virtual memory."""

    READ_WRITE = "rw"
    READ = "r"


class VirtualMemoryAllocationType(StrEnum):
    """Whether memory stays where it is."""

    PINNED = "pinned"
    MANAGED = "managed"


class VirtualMemoryGranularityType(StrEnum):
    """The steps in which virtual memory is taken: the smallest that work, or the quickest."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryHandleType(StrEnum):
    """What other processes can get the memory by."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryLocationType(StrEnum):
    """Where the memory is."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"
