"""Device: identity, facts, current device, what it makes."""

import pickle
import re
import threading
import weakref

import pytest
from cuda_core import (
    Buffer,
    ClosedError,
    ComputeCapability,
    Context,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    MemoryResource,
    Stream,
)


def test_one_object_an_ordinal(device):
    assert Device(0) is device
    assert Device(device_id=0) is device
    assert Device(0) == device
    assert hash(Device(0)) == hash(device)
    assert int(device) == 0
    assert device.device_id == 0
    assert device != 0
    assert isinstance(device, Device)


def test_all_devices(device):
    devices = Device.get_all_devices()
    assert len(devices) >= 1
    assert [each.device_id for each in devices] == list(range(len(devices)))
    assert devices[0] is device
    assert len({hash(each) for each in devices}) == len(devices)


def test_repr_names_the_ordinal(device):
    assert "Device" in repr(device)
    assert "0" in repr(device)


@pytest.mark.parametrize("ordinal", [-1, 1_000_000, 2**31, 2**63])
def test_no_such_device(device, ordinal):
    with pytest.raises((ValueError, OverflowError)) as caught:
        Device(ordinal)
    assert str(len(Device.get_all_devices())) in str(caught.value) or "device" in str(caught.value)


@pytest.mark.parametrize("wrong", ["0", 0.0, [], object()])
def test_ordinal_of_a_wrong_type(device, wrong):
    with pytest.raises(TypeError):
        Device(wrong)


def test_unknown_keyword(device):
    with pytest.raises(TypeError, match="ordinal"):
        Device(ordinal=0)


def test_name(device, emulated):
    assert isinstance(device.name, str)
    assert device.name.strip()
    assert ("emulat" in device.name.lower()) == emulated


def test_uuid(device):
    assert re.fullmatch(r"(GPU-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device.uuid), device.uuid
    others = [each.uuid for each in Device.get_all_devices()]
    assert len(set(others)) == len(others)


def test_pci_bus_id(device):
    assert re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]", device.pci_bus_id), (
        device.pci_bus_id
    )


def test_compute_capability(device, emulated):
    capability = device.compute_capability
    assert isinstance(capability, ComputeCapability)
    assert isinstance(capability, tuple)
    assert capability == (capability.major, capability.minor)
    assert capability >= (5, 0)
    assert capability < (100, 0)
    assert device.arch == f"{capability.major}{capability.minor}"
    if emulated:
        import os

        told = os.environ.get("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY", "8.0")
        assert f"{capability.major}.{capability.minor}" == told


def test_is_emulated(device):
    assert device.is_emulated in (True, False)
    assert isinstance(device.is_emulated, bool)


def test_context(device):
    context = device.context
    assert isinstance(context, Context)
    assert context == device.context
    assert hash(context) == hash(device.context)
    assert int(context.handle) != 0
    assert context.is_green is False
    assert context.is_closed is False
    assert weakref.ref(context)() is context
    assert hex(int(context.handle)) in repr(context)
    with context.create_stream() as stream:
        assert stream.device is device
        assert stream.context == context


def test_set_current_makes_it_what_device_means(device):
    assert device.set_current() is None
    assert Device() is device


def test_with_restores_what_was_current(device):
    def in_a_fresh_thread():
        before = current_context()
        with Device(0) as entered:
            found.append(entered is device)
            found.append(current_context() != 0)
            with device:
                found.append(current_context() != 0)
            found.append(current_context() != 0)
        found.append(current_context() == before)

    found = []
    thread = threading.Thread(target=in_a_fresh_thread)
    thread.start()
    thread.join()
    assert found == [True] * 5


def test_with_lets_an_exception_through(device):
    with pytest.raises(ZeroDivisionError), device:
        _ = 1 / 0


def test_methods_leave_the_current_context_alone(device):
    def in_a_fresh_thread():
        before = current_context()
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        buffer.fill(1, stream=stream)
        stream.record()
        stream.sync()
        buffer.close()
        stream.close()
        device.sync()
        found.append((before, current_context()))

    found = []
    thread = threading.Thread(target=in_a_fresh_thread)
    thread.start()
    thread.join()
    assert found == [(0, 0)]


def current_context():
    """The calling thread's current CUcontext, asked of the driver itself."""
    import ctypes

    from cuda_core import _core  # noqa: F401  (the driver is open)

    context = ctypes.c_void_p()
    driver = ctypes.CDLL(loaded_driver())
    assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value or 0


def loaded_driver():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if re.search(r"/libcuda(\.so\S*|_core_emulator\S*\.so)$", line.rstrip()):
                return line.split(None, 5)[5].strip()
    raise AssertionError("no driver is loaded")


def test_default_stream(device):
    stream = device.default_stream
    assert isinstance(stream, Stream)
    assert int(stream.handle) in (0, 1, 2)
    assert stream.sync() is None


def test_create_stream(device):
    with device.create_stream() as stream:
        assert isinstance(stream, Stream)
        assert stream.device is device
        assert stream.is_nonblocking is True
    with device.create_stream(options={"nonblocking": False}) as stream:
        assert stream.is_nonblocking is False


def test_create_stream_of_another_library(device, stream):
    class Foreign:
        def __cuda_stream__(self):
            return (0, int(stream.handle))

    wrapped = device.create_stream(Foreign())
    assert wrapped == stream
    assert int(wrapped.handle) == int(stream.handle)
    wrapped.sync()
    wrapped.close()
    assert stream.sync() is None  # closing a wrapper leaves the stream


def test_create_stream_of_a_stream_shares_it(device):
    """Closing one of the two, as another thread may in the middle of a call, leaves the stream to the other."""
    first = device.create_stream(options={"nonblocking": False})
    second = device.create_stream(first)
    assert second == first
    first.close()
    assert not second.is_closed
    assert second.is_nonblocking is False  # a CUstream that was destroyed would be refused
    second.record().sync()
    second.close()
    with pytest.raises(ClosedError):
        device.create_stream(first)


def test_create_stream_refuses(device):
    with pytest.raises(TypeError):
        device.create_stream(42)
    with pytest.raises(TypeError):
        device.create_stream(options={"nonblokking": True})
    with pytest.raises(TypeError):
        device.create_stream(options=7)


def test_create_event(device):
    event = device.create_event()
    assert event.device is device
    assert event.is_timing_enabled is False
    event.close()
    assert device.create_event({"timing_enabled": True}).is_timing_enabled is True


def test_allocate(device, stream):
    buffer = device.allocate(1000, stream=stream)
    assert isinstance(buffer, Buffer)
    assert buffer.size == 1000
    assert buffer.device_id == 0
    with pytest.raises(TypeError):
        device.allocate(1000)
    with pytest.raises(TypeError):
        device.allocate("1000", stream=stream)
    with pytest.raises(TypeError):
        device.allocate(10.0, stream=stream)


def test_memory_resource(device, stream):
    standard = device.memory_resource
    assert isinstance(standard, DeviceMemoryResource)
    assert isinstance(standard, MemoryResource)
    assert standard.device_id == 0
    pinned = LegacyPinnedMemoryResource()
    device.memory_resource = pinned
    try:
        assert device.memory_resource is pinned
        buffer = device.allocate(16, stream=stream)
        assert buffer.is_host_accessible
        assert buffer.memory_resource is pinned
    finally:
        device.memory_resource = standard
    assert device.memory_resource is standard
    with pytest.raises(TypeError):
        device.memory_resource = 5
    assert device.memory_resource is standard


def test_sync_waits(device, stream, compile):
    kernel = compile(
        'extern "C" __global__ void late(volatile int *out) { for (int i = 0; i < 20000; i++) out[1] = i; out[0] = 7; }'
    ).get_kernel("late")
    from cuda_core import LaunchConfig, launch

    pinned = LegacyPinnedMemoryResource().allocate(8)
    memoryview(pinned).cast("B")[:] = bytes(8)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, pinned)
    assert device.sync() is None
    assert int.from_bytes(memoryview(pinned).cast("B")[:4], "little") == 7


def test_pickle(device):
    assert pickle.loads(pickle.dumps(device)) is device


def test_attributes_are_read_only(device):
    for name in ("name", "uuid", "device_id", "compute_capability", "properties", "arch"):
        with pytest.raises(AttributeError):
            setattr(device, name, None)


def test_peer_access_takes_device_or_ordinal(device):
    with pytest.raises((ValueError, TypeError)):
        device.can_access_peer(1_000_000)
    with pytest.raises(TypeError):
        device.can_access_peer("peer")
    for other in Device.get_all_devices()[1:]:
        assert device.can_access_peer(other) == device.can_access_peer(other.device_id)


def test_context_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        Context()
