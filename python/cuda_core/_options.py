"""Options of the objects, as dataclasses. Wherever one is taken, a dict of the same names does as well.

A field is checked whenever it is set, against its own annotation: _KINDS says what each annotation allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from cuda_core._core import Device, NotSupportedError
from cuda_core.typing import (
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)

__all__ = [
    "DeviceMemoryResourceOptions",
    "EventOptions",
    "ManagedMemoryResourceOptions",
    "PinnedMemoryResourceOptions",
    "ProgramOptions",
    "StreamOptions",
    "VirtualMemoryResourceOptions",
]

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]
Strings = str | Sequence[str]
Integers = int | Sequence[int]
Macro = str | tuple[str, "str | int | float"]
Macros = Macro | Sequence[Macro] | Mapping[str, "str | int | float"]
Peers = Sequence[Device | int]
Sources = Sequence[tuple[str, "str | bytes | bytearray"]]


# ---- checking a field ----


class _Kind(NamedTuple):
    allows: Callable[[Any], bool]
    expected: str


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_macro(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], (str, int, float))
    return isinstance(value, str)


def _is_source(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], (str, bytes, bytearray))
    )


def _is_peer(value: Any) -> bool:
    return isinstance(value, Device) or _is_int(value)


def _each(allows: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(allows, value))


def _one_or_each(allows: Callable[[Any], bool]) -> Callable[[Any], bool]:
    each = _each(allows)
    return lambda value: allows(value) or each(value)


def _is_macros(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_macro, value.items()))
    return _is_macro(value) or _each(_is_macro)(value)


_KINDS = {
    "bool": _Kind(_is_bool, "a bool"),
    "int": _Kind(_is_int, "an int"),
    "str": _Kind(_is_str, "a str"),
    "Path": _Kind(_is_path, "a str or os.PathLike"),
    "Paths": _Kind(_one_or_each(_is_path), "a str, an os.PathLike, or a list of them"),
    "Strings": _Kind(_one_or_each(_is_str), "a str or a list of str"),
    "Integers": _Kind(_one_or_each(_is_int), "an int or a list of int"),
    "Macros": _Kind(_is_macros, "a str, a (name, value) tuple, a list of either, or a dict"),
    "Peers": _Kind(_each(_is_peer), "a list of Device or int"),
    "Sources": _Kind(_each(_is_source), "a list of (name, source) tuples"),
}


class _Options:
    """Checks each field when it is set, and shows in its repr the fields that are not at their default."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        field = type(self).__dataclass_fields__.get(name)  # type: ignore[attr-defined]
        if field is not None:
            self._check(name, field.type, value)
        object.__setattr__(self, name, value)

    @classmethod
    def _check(cls, name: str, annotation: str, value: Any) -> None:
        annotation, optional, _ = annotation.partition(" | None")
        if value is None and optional:
            return
        kind = _KINDS[annotation]
        if not kind.allows(value):
            expected = kind.expected + (" or None" if optional else "")
            raise TypeError(f"{cls.__name__}.{name} must be {expected}, not {type(value).__name__} ({value!r:.80})")

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        )
        return f"{type(self).__name__}({shown})"


# ---- streams, events, memory ----


@dataclass(slots=True, repr=False)
class StreamOptions(_Options):
    """How Device.create_stream makes a stream.

    nonblocking: the stream does not wait for the legacy default stream, nor that one for it.
    priority: lower numbers go first, within the device's range; None is the lowest priority, 0."""

    nonblocking: bool = True
    priority: int | None = None


@dataclass(slots=True, repr=False)
class EventOptions(_Options):
    """How an event is made.

    timing_enabled: the event carries a time, so that ``end - start`` gives milliseconds.
    blocking_sync: a thread that waits for the event sleeps instead of spinning.
    ipc_enabled: other processes may open the event."""

    timing_enabled: bool = False
    blocking_sync: bool = False
    ipc_enabled: bool = False


@dataclass(slots=True, repr=False)
class DeviceMemoryResourceOptions(_Options):
    """How a DeviceMemoryResource makes its pool.

    ipc_enabled: other processes may map the allocations.
    max_size: bytes the pool may hold at most; 0 leaves it to the driver."""

    ipc_enabled: bool = False
    max_size: int = 0


@dataclass(slots=True, repr=False)
class PinnedMemoryResourceOptions(_Options):
    """How a PinnedMemoryResource makes its pool of page-locked host memory.

    ipc_enabled: other processes may map the allocations.
    max_size: bytes the pool may hold at most; 0 leaves it to the driver.
    numa_id: the NUMA node of the memory; None is the node nearest to the current device."""

    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None


@dataclass(slots=True, repr=False)
class ManagedMemoryResourceOptions(_Options):
    """Where the memory of a ManagedMemoryResource should be.

    preferred_location: the number of a device, or of a NUMA node of the host; without a type, -1 is the host.
    preferred_location_type: "device", "host" (without a number), or "host_numa" (None is the node nearest to the
    current device). With neither, memory begins where it is used first."""

    preferred_location: int | None = None
    preferred_location_type: str | None = None


@dataclass(slots=True, repr=False)
class VirtualMemoryResourceOptions(_Options):
    """How a VirtualMemoryResource makes memory.

    location_type: ``"device"``, or one of the host's places, which the device can use, too.
    handle_type: how other processes can get it; None: not at all.
    granularity: the steps in which addresses and memory are taken.
    addr_hint: the address wanted; 0 leaves it to the driver. addr_align: a power of two, or None.
    peers: devices, or their numbers, that get peer_access; self_access is the device's own. None: no access."""

    allocation_type: str = VirtualMemoryAllocationType.PINNED
    location_type: str = VirtualMemoryLocationType.DEVICE
    handle_type: str | None = VirtualMemoryHandleType.POSIX_FD
    granularity: str = VirtualMemoryGranularityType.RECOMMENDED
    gpu_direct_rdma: bool = False
    addr_hint: int = 0
    addr_align: int | None = None
    peers: Peers = ()
    self_access: str | None = VirtualMemoryAccessType.READ_WRITE
    peer_access: str | None = VirtualMemoryAccessType.READ_WRITE


# ---- programs ----


@dataclass(slots=True, repr=False)
class ProgramOptions(_Options):
    """How a Program is compiled. A field that is None leaves the compiler's own default.

    name: what diagnostics call the source.
    arch: ``"sm_90"``, ``"compute_90"`` or ``"90"``; None is that of the current device.
    define_macro: ``"NAME"``, ``"NAME=value"``, ``("NAME", value)``, a list of either, or a dict.
    include_path: a directory or a list of them. CUDA's own headers are found without.
    diag_error, diag_suppress, diag_warn: a diagnostic's number or a list of them.
    split_compile: threads for optimisation; 0 takes as many as the machine has.
    extra_sources, use_libdevice: for NVVM programs only.
    extra_options: further compiler options, handed on as they are.

    Every other field is the compiler option of that name; NVRTC's documentation says what it does."""

    name: str | None = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: Strings | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: Macros | None = None
    undefine_macro: Strings | None = None
    include_path: Paths | None = None
    pre_include: Paths | None = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: Integers | None = None
    diag_suppress: Integers | None = None
    diag_warn: Integers | None = None
    brief_diagnostics: bool | None = None
    time: Path | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: Path | None = None
    device_float128: bool | None = None
    frandom_seed: str | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: Path | None = None
    use_pch: Path | None = None
    pch_dir: Path | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: Sources | None = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None
    use_bundled_headers: Path | None = None
    modify_stack_limit: bool | None = None
    device_stack_protector: bool | None = None
    jump_table_density: int | None = None
    extra_options: Strings | None = None

    def as_bytes(self, backend: str, target_type: str | None = None) -> list[bytes]:
        """The options as the compiler takes them.

        backend: ``"NVRTC"``, in any case; the others come with their compilers.
        target_type: what is to be compiled, where that decides options: ``"ptx"``, ``"cubin"`` or ``"ltoir"``.

        Raises ValueError for options that contradict each other or that the backend has not."""
        known = {"nvrtc", "nvvm", "nvjitlink", "driver"}
        if str(backend).lower() not in known:
            raise ValueError(f"backend must be 'NVRTC', 'NVVM', 'nvJitLink' or 'driver', not {backend!r}")
        if str(backend).lower() != "nvrtc":
            raise NotSupportedError(f"options for {backend} are not supported by this version: only NVRTC compiles yet")
        if target_type not in (None, "ptx", "cubin", "ltoir"):
            raise ValueError(f"target_type must be 'ptx', 'cubin' or 'ltoir', not {target_type!r}")
        return [option.encode() for option in self._nvrtc_options(target_type)]

    def _nvrtc_options(self, target_type: str | None) -> list[str]:
        for name in _NVVM_ONLY:
            if getattr(self, name) is not None:
                raise ValueError(f"ProgramOptions.{name} is for NVVM programs; NVRTC has no such option")
        options = [f"-arch={self._architecture(target_type)}"]
        for name, render in _NVRTC.items():
            value = getattr(self, name)
            if value is not None:
                options += render(value)
        if target_type == "ltoir":
            if not self.link_time_optimization:
                options.append("-dlto")
        elif target_type is not None and self.link_time_optimization:
            raise ValueError(
                f"ProgramOptions.link_time_optimization gives 'ltoir', not {target_type!r}: compile to 'ltoir' and link"
            )
        return options

    def _architecture(self, target_type: str | None) -> str:
        arch = self.arch if self.arch is not None else Device().arch
        if arch[:1].isdigit():
            arch = "sm_" + arch
        if target_type == "cubin" and arch.startswith("compute_"):
            real = arch.replace("compute_", "sm_")
            raise ValueError(f"a cubin needs a real architecture: arch={real!r}, not {arch!r}")
        return arch


# ---- NVRTC's spelling of each field ----


def _flag(option: str) -> Callable[[bool], list[str]]:
    return lambda value: [option] if value else []


def _switch(option: str) -> Callable[[bool], list[str]]:
    return lambda value: [f"{option}={'true' if value else 'false'}"]


def _text(option: str) -> Callable[[str], list[str]]:
    return lambda value: [f"{option}={value}"]


def _number(option: str) -> Callable[[int], list[str]]:
    return lambda value: [f"{option}={int(value)}"]


def _path(option: str) -> Callable[[Path], list[str]]:
    return lambda value: [f"{option}={os.fspath(value)}"]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _texts(option: str) -> Callable[[Paths], list[str]]:
    return lambda value: [f"{option}={os.fspath(each)}" for each in _listed(value)]


def _numbers(option: str) -> Callable[[Integers], list[str]]:
    # NVRTC takes the numbers in one option, and only the last of several options counts.
    return lambda value: [f"{option}=" + ",".join(str(int(each)) for each in _listed(value))] if _listed(value) else []


def _macros(value: Macros) -> list[str]:
    if isinstance(value, Mapping):
        value = list(value.items())
    rows = value if isinstance(value, list) or (isinstance(value, tuple) and not _is_macro(value)) else [value]
    return ["--define-macro=" + (row if isinstance(row, str) else f"{row[0]}={_macro_value(row[1])}") for row in rows]


def _macro_value(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _optimize(value: bool) -> list[str]:
    # NVRTC has only "on", which is what it does unless it is asked for debug code.
    return ["--dopt=on"] if value else []


_NVVM_ONLY = ("extra_sources", "use_libdevice")

_NVRTC: dict[str, Callable[[Any], list[str]]] = {
    "relocatable_device_code": _switch("--relocatable-device-code"),
    "extensible_whole_program": _flag("--extensible-whole-program"),
    "debug": _flag("--device-debug"),
    "lineinfo": _flag("--generate-line-info"),
    "device_code_optimize": _optimize,
    "ptxas_options": _texts("--ptxas-options"),
    "max_register_count": _number("--maxrregcount"),
    "ftz": _switch("--ftz"),
    "prec_sqrt": _switch("--prec-sqrt"),
    "prec_div": _switch("--prec-div"),
    "fma": _switch("--fmad"),
    "use_fast_math": _flag("--use_fast_math"),
    "extra_device_vectorization": _flag("--extra-device-vectorization"),
    "link_time_optimization": _flag("-dlto"),
    "gen_opt_lto": _flag("--gen-opt-lto"),
    "define_macro": _macros,
    "undefine_macro": _texts("--undefine-macro"),
    "include_path": _texts("--include-path"),
    "pre_include": _texts("--pre-include"),
    "no_source_include": _flag("--no-source-include"),
    "std": _text("--std"),
    "builtin_move_forward": _switch("--builtin-move-forward"),
    "builtin_initializer_list": _switch("--builtin-initializer-list"),
    "disable_warnings": _flag("--disable-warnings"),
    "restrict": _flag("--restrict"),
    "device_as_default_execution_space": _flag("--device-as-default-execution-space"),
    "device_int128": _flag("--device-int128"),
    "optimization_info": _text("--optimization-info"),
    "no_display_error_number": _flag("--no-display-error-number"),
    "diag_error": _numbers("--diag-error"),
    "diag_suppress": _numbers("--diag-suppress"),
    "diag_warn": _numbers("--diag-warn"),
    "brief_diagnostics": _switch("--brief-diagnostics"),
    "time": _path("--time"),
    "split_compile": _number("--split-compile"),
    "fdevice_syntax_only": _flag("--fdevice-syntax-only"),
    "minimal": _flag("--minimal"),
    "no_cache": _flag("--no-cache"),
    "fdevice_time_trace": _path("--fdevice-time-trace"),
    "device_float128": _flag("--device-float128"),
    "frandom_seed": _text("--frandom-seed"),
    "ofast_compile": _text("--Ofast-compile"),
    "pch": _flag("--pch"),
    "create_pch": _path("--create-pch"),
    "use_pch": _path("--use-pch"),
    "pch_dir": _path("--pch-dir"),
    "pch_verbose": _switch("--pch-verbose"),
    "pch_messages": _switch("--pch-messages"),
    "instantiate_templates_in_pch": _switch("--instantiate-templates-in-pch"),
    "numba_debug": _flag("--numba-debug"),
    "use_bundled_headers": _path("--use-bundled-headers"),
    "modify_stack_limit": _switch("--modify-stack-limit"),
    "device_stack_protector": _switch("--device-stack-protector"),
    "jump_table_density": _number("--jump-table-density"),
    "extra_options": lambda value: list(_listed(value)),
}
