"""No hidden current device: objects act on their own device. On two emulated devices, in fresh processes."""

import pytest
from support import run_python

TWO = {"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_DEVICES": 2}

PRELUDE = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import *
from cuda_core import Buffer
SOURCE = 'extern "C" __global__ void put(int *p, int v) { *p = v; }'
def read(buffer, stream):
    data = bytearray(buffer.size)
    buffer.copy_to(data, stream=stream)
    stream.sync()
    return int.from_bytes(data[:4], "little", signed=True)
ONE = LaunchConfig(grid=1, block=1)
zero, one = Device.get_all_devices()
"""


def run(source, expected):
    process = run_python(PRELUDE + source, env=TWO)
    assert process.stdout.split() == expected.split(), process.stdout + process.stderr


def test_there_are_as_many_as_asked_for():
    for count in (1, 2, 3, 8):
        process = run_python(
            f"from cuda_core import Device\nprint(len(Device.get_all_devices()), Device({count - 1}).device_id)",
            env={**TWO, "CUDA_CORE_EMULATOR_DEVICES": count},
        )
        assert process.stdout.split() == [str(count), str(count - 1)]


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1000000"])
def test_count_that_cannot_be(value):
    """Refused with a message, or the default: never a crash."""
    process = run_python(
        "from cuda_core import Device\n"
        "try:\n    print(len(Device.get_all_devices()))\n"
        "except Exception as error:\n    print(type(error).__name__, error)",
        env={**TWO, "CUDA_CORE_EMULATOR_DEVICES": value},
    )
    assert process.stdout.strip()


def test_objects_of_each_device():
    run(
        """
one_stream, zero_stream = one.create_stream(), zero.create_stream()
buffer = one.allocate(16, stream=one_stream)
print(one_stream.device.device_id, zero_stream.device.device_id, buffer.device_id, one_stream.record().device.device_id)
print(one.context == zero.context, one.uuid == zero.uuid, one.memory_resource.device_id)
print(one.pci_bus_id == zero.pci_bus_id)
""",
        "1 0 1 1 False False 1 False",
    )


def test_work_on_the_second_device_without_set_current():
    run(
        """
stream = one.create_stream()
buffer = one.allocate(4, stream=stream)
launch(stream, ONE, Program(SOURCE, "c++").compile("cubin").get_kernel("put"), buffer, 41)
print(read(buffer, stream), Device().device_id)
""",
        "41 0",
    )


def test_one_kernel_on_both_devices():
    run(
        """
kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("put")
for device, value in ((zero, 10), (one, 11), (zero, 12)):
    stream = device.create_stream()
    buffer = device.allocate(4, stream=stream)
    launch(stream, ONE, kernel, buffer, value)
    print(read(buffer, stream))
""",
        "10 11 12",
    )


def test_whatever_is_current_stays_so_and_does_not_matter():
    run(
        """
for current in (zero, one):
    current.set_current()
    for device in (zero, one):
        stream = device.create_stream()
        event = device.create_event()
        buffer = device.allocate(4, stream=stream)
        buffer.fill(7, stream=stream)
        stream.record(event)
        event.sync()
        launch(stream, ONE, Program(SOURCE, "c++").compile("cubin").get_kernel("put"), buffer, 5)
        assert read(buffer, stream) == 5
        assert buffer.device_id == device.device_id == event.device.device_id
        device.sync()
        buffer.close()
        stream.close()
        assert Device() is current
with one:
    print(Device().device_id)
    with zero:
        print(Device().device_id)
print(Device().device_id)
""",
        "1 0 1",
    )


def test_copy_between_devices():
    run(
        """
a, b = zero.create_stream(), one.create_stream()
source = zero.allocate(4, stream=a)
source.copy_from((1234).to_bytes(4, "little"), stream=a)
target = one.allocate(4, stream=b)
b.wait(a)
target.copy_from(source, stream=b)
print(read(target, b))
""",
        "1234",
    )


def test_event_of_another_device_is_waited_for():
    run(
        """
a, b = zero.create_stream(), one.create_stream()
pinned = LegacyPinnedMemoryResource().allocate(4)
launch(a, ONE, Program(SOURCE, "c++").compile("cubin").get_kernel("put"), pinned, 99)
b.wait(a.record())
print(read(pinned, b))
""",
        "99",
    )


def test_event_is_recorded_on_its_own_device_only():
    run(
        """
try:
    zero.create_stream().record(one.create_event())
except (ValueError, CUDAError) as error:
    print("refused")
""",
        "refused",
    )


def test_buffer_of_another_device_without_peer_access():
    """The kernel of device 1 may not touch memory of device 0 that was not opened to it."""
    run(
        """
a, b = zero.create_stream(), one.create_stream()
buffer = zero.allocate(4, stream=a)
a.sync()
try:
    launch(b, ONE, Program(SOURCE, "c++").compile("cubin").get_kernel("put"), buffer, 5)
    b.sync()
except (CUDAError, ValueError, TypeError) as error:
    print("refused")
""",
        "refused",
    )


def test_peer_access():
    run(
        """
if zero.can_access_peer(one) and one.can_access_peer(0):
    pool = DeviceMemoryResource(zero, {"max_size": 1 << 20})
    pool.peer_accessible_by = [one]
    assert [getattr(d, "device_id", d) for d in pool.peer_accessible_by] == [1]
    a, b = zero.create_stream(), one.create_stream()
    buffer = pool.allocate(4, stream=a)
    a.sync()
    launch(b, ONE, Program(SOURCE, "c++").compile("cubin").get_kernel("put"), buffer, 6)
    print(read(buffer, b))
    pool.peer_accessible_by = []
    assert list(pool.peer_accessible_by) == []
else:
    print(6)
""",
        "6",
    )


def test_threads_have_their_own_current_device():
    run(
        """
import threading
one.set_current()
seen = []
def work():
    seen.append(Device().device_id)
    with one:
        seen.append(Device().device_id)
    seen.append(Device().device_id)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(*seen, Device().device_id)
""",
        "0 1 0 1",
    )


def test_capability_that_is_told():
    for told in ("7.5", "9.0", "12.0"):
        process = run_python(
            "from cuda_core import Device\nd = Device(0)\nprint('.'.join(map(str, d.compute_capability)), d.arch)",
            env={**TWO, "CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY": told},
        )
        assert process.stdout.split() == [told, told.replace(".", "")]
