"""What the fault sweep (fault_sweep.py) runs: scenarios that together use every public class of cuda_core.

A scenario does a small job and checks its result. It must work in a fresh process and again in the same one, must leave
nothing alive, and lets every error through. A new public class joins by its name in one of the lists below."""

import ctypes
import gc
import os
import warnings
from collections import namedtuple
from contextlib import contextmanager

import cuda_core
from cuda_core import (
    Buffer,
    ClosedError,
    CompileError,
    ComputeCapability,
    CUDAError,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    DeviceProperties,
    EmulatedDeviceWarning,
    Event,
    EventOptions,
    Host,
    InvalidValueError,
    Kernel,
    KernelNotFoundError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LibraryNotFoundError,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    MaxPotentialBlockSizeOccupancyResult,
    MemoryResource,
    NotSupportedError,
    ObjectCode,
    OutOfMemoryError,
    ParamInfo,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    ProgramOptions,
    Stream,
    StreamOptions,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
)
from cuda_core.typing import IsStreamType
from cuda_core.utils import prefetch_batch

SOURCE = """
struct Pair { int a, b; };
extern "C" __global__ void add(int *p, int v) { p[threadIdx.x] += v; }
extern "C" __global__ void many(int *p, char a, float b, double c, Pair d) { *p = a + (int)b + (int)c + d.a + d.b; }
extern "C" __global__ void shared(int *p)
{
    extern __shared__ int s[];
    s[20000] = p[0];
    p[1] = s[20000];
}
"""

SCENARIOS = {}
Scenario = namedtuple("Scenario", "uses opens run")  # opens: the driver is open before the faults begin
code = {}  # "cubin", "ptx": bytes of SOURCE, compiled once, before there is a driver


def scenario(*uses, opens=True):
    def register(function):
        SCENARIOS[function.__name__] = Scenario(uses, opens, function)
        return function

    return register


def prepare():
    """Compiles, and imports what comes at first need, so that the sweep is not about that."""
    options = ProgramOptions(arch="sm_80")
    code.update((target, Program(SOURCE, "c++", options).compile(target).code) for target in ("cubin", "ptx"))


class WrongResultError(Exception):
    """A scenario did not give what it should, and said nothing."""


def check(got, wanted):
    if got != wanted:
        raise WrongResultError(f"{got!r}, not {wanted!r}")


@contextmanager
def refused(error):
    """The body is refused by `error`, and not by one of the sweep's."""
    try:
        yield
    except error as caught:
        if "a fault by plan" in str(caught):
            raise
    else:
        raise WrongResultError(f"no {error.__name__}")


def contents(buffer, stream):
    """The bytes of a buffer, once the work queued in stream is done."""
    there = bytearray(buffer.size)
    buffer.copy_to(there, stream=stream)
    stream.sync()
    return bytes(there)


def numbers(buffer, stream):
    return list(memoryview(contents(buffer, stream)).cast("i"))


# ---- devices and contexts --------------------------------------------------------------------------------------------


@scenario("Device", "EmulatedDeviceWarning", opens=False)
def first_use():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        device = Device(0)
    check([each.category for each in caught], [EmulatedDeviceWarning] if caught else [])
    check(device.is_emulated, True)
    device.sync()


@scenario("LibraryNotFoundError", opens=False)
def no_driver():
    os.environ["CUDA_CORE_DRIVER"] = "/nowhere/libcuda.so"
    with refused(LibraryNotFoundError):
        Device(0)


@scenario("Device", "DeviceProperties", "ComputeCapability")
def device_facts():
    device = Device(0)
    check(device.compute_capability, ComputeCapability((8, 0)))
    check(device.arch, "80")
    check(isinstance(device.properties, DeviceProperties), True)
    check(device.properties.warp_size, 32)
    check(device.properties["max_threads_per_block"], 1024)
    check([each.device_id for each in Device.get_all_devices()], [0])
    check((len(device.uuid) > 30, len(device.pci_bus_id) > 6, len(device.name) > 3), (True, True, True))
    check(device.can_access_peer(device), True)


@scenario("Device", "Context", "Stream")
def contexts():
    device = Device(0)
    with device:
        check(Device().device_id, 0)
    context = device.context
    check((context.device, context.is_green, context.is_closed), (device, False, False))
    with context.create_stream() as stream:
        check(stream.context, context)
    with device:
        device.set_current(context)
        check(Device(), device)
        device.sync()


# ---- streams and events ----------------------------------------------------------------------------------------------


@scenario("Stream", "StreamOptions")
def streams():
    device = Device(0)
    with device.create_stream(options=StreamOptions(nonblocking=True, priority=-1)) as stream:
        check((stream.is_nonblocking, stream.priority, stream.device), (True, -1, device))
        with device.create_stream() as other:
            other.wait(stream)
            check(other.is_done in (True, False), True)
        wrapped = Stream.from_handle(int(stream.handle))
        check(wrapped.context, device.context)
        wrapped.sync()


@scenario("IsStreamType", "Stream")
def streams_of_others():
    class Other:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return (0, int(self.stream.handle))

    device = Device(0)
    with device.create_stream() as stream:
        other = Other(stream)
        check(isinstance(other, IsStreamType), True)
        made = device.create_stream(other)
        buffer = device.allocate(4, stream=made)
        buffer.fill(7, stream=other)
        check(numbers(buffer, made), [0x07070707])
        buffer.close(stream)


@scenario("Event", "EventOptions")
def events():
    device = Device(0)
    with device.create_stream() as stream:
        first = stream.record(options=EventOptions(timing_enabled=True))
        second = device.create_event(EventOptions(timing_enabled=True))
        check(isinstance(second, Event), True)
        stream.record(second)
        stream.wait(second)
        second.sync()
        check((second.is_done, second - first >= 0, second.context), (True, True, device.context))


@scenario("Stream", "Event", "Buffer")
def waits():
    device = Device(0)
    with device.create_stream() as stream:
        buffer = device.allocate(32 << 20, stream=stream)
        buffer.fill(1, stream=stream)  # long enough for the waits to find it at work
        stream.record().sync()
        buffer.fill(2, stream=stream)
        stream.sync()


@scenario("Stream", "Buffer")
def default_stream():
    device = Device(0)
    buffer = device.allocate(8, stream=device.default_stream)
    buffer.fill(b"\1\0\0\0", stream=device.default_stream)
    check(numbers(buffer, device.default_stream), [1, 1])


# ---- memory ----------------------------------------------------------------------------------------------------------


@scenario("Buffer")
def buffers():
    device = Device(0)
    with device.create_stream() as stream, device.create_stream() as other:
        buffer = device.allocate(16, stream=stream)
        buffer.copy_from(memoryview(b"0123456789abcdef"), stream=stream)
        other.wait(stream)
        copy = buffer[4:12].copy_to(stream=other)
        stream.wait(other)
        buffer.fill(b"\1\2", stream=stream)
        check((buffer.device_id, buffer.is_host_accessible, len(copy)), (0, False, 8))
        check(contents(copy, other), b"456789ab")
        copy.set_deallocation_stream(stream)
        del copy
        buffer.close(other)


@scenario("Buffer", "LegacyPinnedMemoryResource")
def pinned_memory():
    device = Device(0)
    pinned = LegacyPinnedMemoryResource().allocate(8)
    memoryview(pinned).cast("B")[:] = b"\1\0\0\0\2\0\0\0"
    with device.create_stream() as stream:
        buffer = device.allocate(8, stream=stream)
        buffer.copy_from(memoryview(pinned), stream=stream)  # kept alive until the copy is done
        check(numbers(buffer, stream), [1, 2])
        check(buffer.__dlpack_device__(), (2, 0))
        buffer.__dlpack__(stream=-1)


@scenario("DeviceMemoryResource", "DeviceMemoryResourceOptions", "OutOfMemoryError")
def pools():
    device = Device(0)
    with (
        device.create_stream() as stream,
        DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 20)) as pool,
    ):
        buffer = pool.allocate(8, stream=stream)
        buffer.fill(0, stream=stream)
        with refused(OutOfMemoryError):
            pool.allocate(1 << 40, stream=stream)
        check(numbers(buffer, stream), [0, 0])
        check(pool.attributes.used_mem_current >= 8, True)
        pool.attributes.release_threshold = 1 << 20
        check(pool.peer_accessible_by, ())


@scenario("PinnedMemoryResource", "PinnedMemoryResourceOptions")
def pinned_pools():
    with (
        Device(0).create_stream() as stream,
        PinnedMemoryResource(PinnedMemoryResourceOptions(max_size=1 << 20)) as pool,
    ):
        buffer = pool.allocate(8, stream=stream)
        stream.sync()
        memoryview(buffer).cast("B")[:] = b"\1\0\0\0\2\0\0\0"
        check(numbers(buffer, stream), [1, 2])


@scenario("ManagedMemoryResource", "ManagedMemoryResourceOptions", "ManagedBuffer", "Host")
def managed_memory():
    device = Device(0)
    options = ManagedMemoryResourceOptions(preferred_location=0, preferred_location_type="device")
    with device.create_stream() as stream, ManagedMemoryResource(options) as pool:
        buffer = pool.allocate(8, stream=stream)
        check((isinstance(buffer, ManagedBuffer), buffer.preferred_location), (True, device))
        buffer.read_mostly = True
        buffer.preferred_location = Host()
        buffer.accessed_by = {device, Host()}
        check((buffer.read_mostly, buffer.preferred_location), (True, Host()))
        check(set(buffer.accessed_by), {device, Host()})
        stream.sync()
        memoryview(buffer).cast("B")[:] = b"\1\0\0\0\2\0\0\0"
        buffer.prefetch(device, stream=stream)
        prefetch_batch(stream, [buffer], Host())
        check(numbers(buffer, stream), [1, 2])
        buffer.discard(stream=stream)
        buffer.discard_prefetch(device, stream=stream)
        buffer.fill(3, stream=stream)
        check(numbers(buffer, stream), [0x03030303] * 2)


@scenario("VirtualMemoryResource", "VirtualMemoryResourceOptions")
def virtual_memory():
    piece = 2 << 20
    with Device(0).create_stream() as stream:
        resource = VirtualMemoryResource(0, VirtualMemoryResourceOptions(self_access="rw"))
        buffer = resource.allocate(8)
        buffer.fill(1, stream=stream)
        for size in (piece + 8, 2 * piece + 8):
            buffer = resource.modify_allocation(buffer, size)
        hint = {"addr_hint": int(buffer.handle) + 3 * piece}
        behind = VirtualMemoryResource(0, hint).allocate(8)  # so that the next growth is a move
        buffer = resource.modify_allocation(buffer, 3 * piece + 8)
        check(numbers(buffer[:8], stream), [0x01010101] * 2)
        behind.close()


@scenario("MemoryResource", "Buffer")
def resources_in_python():
    device = Device(0)

    class Mine(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def allocate(self, size, *, stream):
            self.inner = device.memory_resource.allocate(size, stream=stream)
            return Buffer.from_handle(int(self.inner.handle), size, mr=self)

        def deallocate(self, ptr, size, *, stream):
            self.inner.close(stream)

    with device.create_stream() as stream:
        buffer = Mine().allocate(8, stream=stream)
        buffer.fill(3, stream=stream)
        check(numbers(buffer, stream), [0x03030303] * 2)
        buffer.close(stream)


@scenario("InvalidValueError", "NotSupportedError", "ClosedError", "CUDAError")
def refusals():
    device = Device(0)
    with device.create_stream() as stream:
        buffer = device.allocate(8, stream=stream)
        with refused(NotSupportedError):
            buffer.ipc_descriptor  # noqa: B018
        with refused(InvalidValueError):
            buffer.copy_from(Buffer.from_handle(int(buffer.handle) + (1 << 36), 8), stream=stream)
    with refused(ClosedError):
        stream.sync()
    with refused(CUDAError):
        device.create_event() - device.create_event()


# ---- code ------------------------------------------------------------------------------------------------------------


@scenario("ObjectCode", "Kernel", "KernelNotFoundError", "ParamInfo")
def libraries():
    library = ObjectCode.from_cubin(code["cubin"])
    check(sorted(library), ["add", "many", "shared"])
    check(library["add"].arguments_info, [ParamInfo((0, 8)), ParamInfo((8, 4))])
    with refused(KernelNotFoundError):
        library.get_kernel("nothing")
    kernel = library.get_kernel("many")
    check(Kernel.from_handle(int(kernel.handle), library).num_arguments, 5)
    check(library.get_module() != 0, True)


@scenario("ObjectCode", "CompileError")
def ptx():
    library = ObjectCode.from_ptx(code["ptx"])
    with Device(0).create_stream() as stream:
        buffer = Device(0).allocate(4, stream=stream)
        buffer.fill(0, stream=stream)
        launch(stream, {"grid": 1, "block": 1}, library["add"], buffer, 2)
        check(numbers(buffer, stream), [2])
    with refused(CompileError):
        ObjectCode.from_ptx(b".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n").get_kernel("a")


@scenario("Program", "ProgramOptions", "CompileError")
def programs():
    with Program("__global__ void f(int *p) { *p = 4; }", "c++", ProgramOptions(std="c++17")) as program:
        made = program.compile("cubin", name_expressions=["f"])
    with Device(0).create_stream() as stream:
        buffer = Device(0).allocate(4, stream=stream)
        launch(stream, {"grid": 1, "block": 1}, made.get_kernel("f"), buffer)
        check(numbers(buffer, stream), [4])
    with refused(CompileError):
        Program("nonsense", "c++").compile("ptx")


@scenario("Kernel", "MaxPotentialBlockSizeOccupancyResult", "LaunchConfig")
def kernels():
    kernel = ObjectCode.from_cubin(code["cubin"]).get_kernel("shared")
    check(kernel.attributes[0].max_threads_per_block, 1024)
    kernel.attributes.max_dynamic_shared_size_bytes = 1 << 10
    check(kernel.attributes.max_dynamic_shared_size_bytes, 1 << 10)
    check(kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0, True)
    found = kernel.occupancy.max_potential_block_size(0, 0)
    check(isinstance(found, MaxPotentialBlockSizeOccupancyResult), True)
    check(kernel.occupancy.available_dynamic_shared_memory_per_block(1, 128) > 0, True)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


@scenario("LaunchConfig", "Kernel", "Buffer")
def launches():
    device = Device(0)
    library = ObjectCode.from_cubin(code["cubin"])
    with device.create_stream() as stream:
        buffer = device.allocate(16, stream=stream)
        buffer.fill(0, stream=stream)
        config = LaunchConfig(grid=1, block=4)
        launch(stream, config, library["add"], buffer, 5)
        launch(stream, LaunchConfig(grid=1, block=4, is_cooperative=True), library["add"], buffer, ctypes.c_int(1))
        check(numbers(buffer, stream), [6] * 4)
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=90_000), library["shared"], buffer)
        launch(stream, config, library["many"], buffer, 1, 2.0, 3.0, Pair(4, 5))
        with refused(TypeError):
            launch(stream, config, library["many"], buffer, 1, 2.0, "text", Pair(4, 5))
        check(numbers(buffer, stream), [15, 6, 6, 6])


def public_classes():
    """The names of them all."""
    names = {name for name in cuda_core.__all__ if isinstance(getattr(cuda_core, name), type)}
    return names | {IsStreamType.__name__}


def used_classes():
    return {name for each in SCENARIOS.values() for name in each.uses}


def let_go():
    """What an error has kept."""
    gc.collect()
