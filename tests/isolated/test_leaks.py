"""Leaks, in fresh processes: memory stays flat over many rounds, and nothing of the driver is left alive."""

import pytest
from support import run_python

# Each round makes and lets go of what its name says. `round(i)` runs often; what it needs once is made before.
ROUNDS = {
    "stream": "device.create_stream().close()",
    "stream dropped": "device.create_stream()",
    "stream with": "with device.create_stream(): pass",
    "event": "device.create_event().close()",
    "event recorded": "stream.record(); stream.sync()",
    "event timed": "a = stream.record(options=timed); b = stream.record(options=timed); b.sync(); b - a",
    "buffer": "device.allocate(4096, stream=stream).close()",
    "buffer dropped": "device.allocate(4096, stream=stream)",
    "slice": "device.allocate(4096, stream=stream)[16:32]",
    "pinned": "pinned.allocate(4096).close()",
    "pinned view": "memoryview(pinned.allocate(4096)).release()",
    "pool": "DeviceMemoryResource(0, {'max_size': 1 << 20}).allocate(64, stream=stream)",
    "pinned pool": "PinnedMemoryResource().allocate(64, stream=stream)",
    "managed": "m = managed.allocate(64, stream=stream); m.read_mostly = True; m.accessed_by = {device, Host()}",
    "managed batch": "discard_batch(stream, [shared]); prefetch_batch(stream, [shared] * 2, [device, Host()])",
    "managed pool": "ManagedMemoryResource({'preferred_location': 0}).allocate(64, stream=stream).preferred_location",
    "wrapped": "Buffer.from_handle(int(buffer.handle), 64, owner=object())",
    "virtual": "virtual.allocate(64).close()",
    "virtual grown": "virtual.modify_allocation(virtual.allocate(64), 3 << 20)",
    "python resource": "mine.allocate(64, stream=stream).close(stream)",
    "copies": "buffer.copy_from(host, stream=stream); buffer.copy_to(bytearray(64), stream=stream); stream.sync()",
    "copies that are not waited for": "buffer.copy_from(bytearray(64), stream=stream)",
    "fill": "buffer.fill(b'1234', stream=stream)",
    "dlpack": "buffer.__dlpack__(stream=-1)",
    "launch": "launch(stream, one, kernel, buffer, i)",
    "launch of everything": "launch(stream, one, many, i, 1.5, True, ctypes.c_int(3), 2.0, buffer, None, Pair(1, 2))",
    "launch refused": "refused(launch, stream, one, kernel, buffer, 'text'); refused(launch, stream, one, kernel, i)",
    "launch config": "LaunchConfig(grid=(i + 1, 2), block=32, shmem_size=8)",
    "kernel": "code.get_kernel('put').arguments_info",
    "unknown kernel": "refused(code.get_kernel, 'nothing')",
    "attributes": "dict(device.properties); kernel.attributes.num_regs; device.name; device.uuid; device.context",
    "errors": "refused(device.allocate, -1, stream=stream); refused(device.allocate, 1 << 50, stream=stream)",
    "library": "ObjectCode.from_cubin(code.code).get_kernel('put')",
    "library launched": "launch(stream, one, ObjectCode.from_cubin(code.code).get_kernel('put'), buffer, i)",
}

SCRIPT = """
import ctypes, gc, sys, warnings
warnings.simplefilter("ignore")
from cuda_core import *
from cuda_core.utils import *
device = Device(0)
stream = device.create_stream()
managed = ManagedMemoryResource()
shared = managed.allocate(64, stream=stream)
timed = EventOptions(timing_enabled=True)
pinned, virtual = LegacyPinnedMemoryResource(), VirtualMemoryResource(0)
buffer, host = device.allocate(64, stream=stream), bytearray(64)
code = Program('''
struct Pair { int a, b; };
extern "C" __global__ void put(int *p, int v) { *p = v; }
extern "C" __global__ void many(int a, float b, bool c, int d, double e, int *f, int *g, Pair h) {}
''', "c++").compile("cubin")
kernel, many = code.get_kernel("put"), code.get_kernel("many")
one = LaunchConfig(grid=1, block=1)

class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))

class Mine(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    def allocate(self, size, *, stream):
        self.inner = device.memory_resource.allocate(size, stream=stream)
        return Buffer.from_handle(int(self.inner.handle), size, mr=self)
    def deallocate(self, ptr, size, *, stream):
        self.inner.close(stream)
mine = Mine()

def refused(function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except (TypeError, ValueError, KeyError, MemoryError):
        return
    raise AssertionError("was not refused")

def round(i):
    ROUND

def resident():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1])

def rounds(n):
    for i in range(n):
        round(i)
        if i % 500 == 499:
            stream.sync()
    stream.sync()
    device.sync()
    gc.collect()

count = COUNT
rounds(count)
before, objects = resident(), len(gc.get_objects())
growth = []
for _ in range(3):
    rounds(count)
    growth.append(resident() - before)
print(min(growth), growth[-1], len(gc.get_objects()) - objects)
"""

SLOW = {
    "virtual": 500,
    "virtual grown": 500,
    "library": 200,
    "library launched": 200,
    "pool": 500,
    "pinned pool": 200,
    "managed pool": 200,
    "errors": 1000,
}


@pytest.mark.parametrize("name", ROUNDS)
def test_memory_stays_flat(name):
    count = SLOW.get(name, 3000)
    process = run_python(SCRIPT.replace("ROUND", ROUNDS[name], 1).replace("COUNT", str(count)), timeout=250)
    _, kilobytes, objects = map(int, process.stdout.split())
    # 3 * count rounds: a leak of 64 bytes a round would be over 500 KiB.
    assert kilobytes < 400 + count / 30, f"{kilobytes} KiB more after {3 * count} rounds of {ROUNDS[name]}"
    assert objects < 50, f"{objects} Python objects more"


def test_nothing_is_left_alive_in_the_emulator():
    """The emulator counts the objects of its driver: all are gone when the last Python object is."""
    process = run_python(
        """
        import ctypes, gc, re, warnings
        warnings.simplefilter("ignore")
        from cuda_core import *
        device = Device(0)
        with open("/proc/self/maps") as maps:
            path = re.search(r"(/\\S*cuda_core_emulator\\S*\\.so)", maps.read())[1]
        emulator = ctypes.CDLL(path)
        names = "contexts streams events pools libraries modules device host registrations managed "
        names = (names + "physical reservations mappings").split()

        def live():
            counts = (ctypes.c_uint64 * len(names))()
            assert emulator.cuEmulatorLiveObjects(counts, ctypes.c_size_t(ctypes.sizeof(counts))) == 0
            return dict(zip(names, counts))

        def work():
            with device.create_stream() as stream, DeviceMemoryResource(0, {"max_size": 1 << 20}) as pool:
                code = Program('extern "C" __global__ void put(int *p, int v) { *p = v; }', "c++").compile("cubin")
                kernel = code.get_kernel("put")
                buffers = [device.allocate(64, stream=stream) for _ in range(8)] + [pool.allocate(64, stream=stream)]
                buffers.append(LegacyPinnedMemoryResource().allocate(64))
                buffers.append(VirtualMemoryResource(0).allocate(64))
                buffers.append(PinnedMemoryResource().allocate(64, stream=stream))
                buffers.append(ManagedMemoryResource().allocate(64, stream=stream))
                for buffer in buffers:
                    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, 5)
                    buffer.copy_to(bytearray(64), stream=stream)
                start = stream.record(options={"timing_enabled": True})
                end = stream.record(options={"timing_enabled": True})
                end.sync()
                assert end - start >= 0
                with device.create_stream() as other:
                    other.wait(stream)

        def settled():
            gc.collect()
            device.sync()
            return live()

        work()
        first = settled()
        for _ in range(5):
            work()
        print(settled() == first, *(f"{name}={count}" for name, count in settled().items() if count))
        """,
        env={"CUDA_CORE_DRIVER": "emulator"},
    )
    same, *left = process.stdout.split()
    assert same == "True", process.stdout
    assert left == ["contexts=1"]  # the primary context stays for the life of the process
