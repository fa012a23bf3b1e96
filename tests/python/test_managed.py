"""Managed memory: the resource, buffers with their advice, hosts as places, and the batch functions."""

import copy
import gc
import pickle
from collections.abc import MutableSet

import pytest
from cuda_core import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    ClosedError,
    Device,
    Host,
    LaunchConfig,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    NotSupportedError,
    launch,
)
from cuda_core.utils import discard_batch, discard_prefetch_batch, prefetch_batch
from support import download, run_python

# ---- hosts ---------------------------------------------------------------------------------------------------------


def test_host():
    assert (Host().numa_id, Host().is_numa_current) == (None, False)
    assert (Host(3).numa_id, Host(numa_id=0).numa_id) == (3, 0)
    assert Host.numa_current().is_numa_current is True
    places = [Host(), Host(0), Host(1), Host.numa_current()]
    assert len(set(places)) == 4
    assert Host(1) == Host(1)
    assert Host(1) != Host(0)
    assert Host(0) != 0
    assert Host(is_numa_current=True) == Host.numa_current()
    assert [repr(each) for each in places] == ["Host()", "Host(numa_id=0)", "Host(numa_id=1)", "Host.numa_current()"]
    for each in places:
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == each


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        ((-1,), {}, ValueError),
        ((2**40,), {}, OverflowError),
        (("0",), {}, TypeError),
        ((True,), {}, TypeError),
        ((1,), {"is_numa_current": True}, ValueError),
        ((), {"node": 1}, TypeError),
        ((1, True), {}, TypeError),
    ],
)
def test_host_refuses(arguments, keywords, error):
    with pytest.raises(error):
        Host(*arguments, **keywords)


# ---- the resource --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def managed(device):
    try:
        return ManagedMemoryResource()
    except NotSupportedError as error:
        pytest.skip(str(error))


@pytest.fixture
def buffer(managed, stream):
    buffer = managed.allocate(4096, stream=stream)
    stream.sync()
    return buffer


def test_resource(managed, stream):
    assert managed.is_managed is True
    assert managed.is_host_accessible is True
    assert managed.is_device_accessible is True
    assert (managed.device_id, managed.preferred_location) == (-1, None)
    buffer = managed.allocate(100, stream=stream)
    assert isinstance(buffer, ManagedBuffer)
    assert buffer.memory_resource is managed
    assert (buffer.is_managed, buffer.is_host_accessible, buffer.is_device_accessible) == (True, True, True)
    assert buffer.__dlpack_device__() == (13, 0)
    assert managed.attributes.used_mem_current >= 100


@pytest.mark.parametrize(
    ("options", "location", "device_id"),
    [
        (None, None, -1),
        ({"preferred_location": 0}, ("device", 0), 0),
        ({"preferred_location": -1}, ("host", None), -1),
        ({"preferred_location": 0, "preferred_location_type": "device"}, ("device", 0), 0),
        ({"preferred_location_type": "host"}, ("host", None), -1),
        ({"preferred_location": 0, "preferred_location_type": "host_numa"}, ("host_numa", 0), -1),
    ],
)
def test_preferred_location_of_a_resource(managed, options, location, device_id):
    with ManagedMemoryResource(options) as pool:
        assert (pool.preferred_location, pool.device_id) == (location, device_id)
    if options:
        with ManagedMemoryResource(ManagedMemoryResourceOptions(**options)) as pool:
            assert pool.preferred_location == location


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"preferred_location": -2}, ValueError),
        ({"preferred_location": 1000}, ValueError),
        ({"preferred_location": "0"}, TypeError),
        ({"preferred_location": 2**80}, OverflowError),
        ({"preferred_location_type": "device"}, ValueError),
        ({"preferred_location": 0, "preferred_location_type": "host"}, ValueError),
        ({"preferred_location": -1, "preferred_location_type": "host_numa"}, ValueError),
        ({"preferred_location_type": "moon"}, ValueError),
        ({"preferred_location_type": 1}, TypeError),
        ({"location": 1}, TypeError),
    ],
)
def test_resource_refuses(managed, options, error):
    with pytest.raises(error):
        ManagedMemoryResource(options)


# ---- buffers -------------------------------------------------------------------------------------------------------


def test_host_and_kernel_share_it(buffer, stream, compile):
    memoryview(buffer).cast("B")[:16] = bytes(range(16))
    kernel = compile('extern "C" __global__ void more(unsigned char *p) { p[threadIdx.x] += 100; }').get_kernel("more")
    launch(stream, LaunchConfig(grid=1, block=16), kernel, buffer)
    stream.sync()
    assert list(memoryview(buffer)[:16]) == [100 + i for i in range(16)]
    assert buffer[3] == 103
    assert download(buffer, stream)[:4] == bytes([100, 101, 102, 103])
    buffer.copy_from(bytes(4096), stream=stream)
    copied = buffer.copy_to(stream=stream)
    assert isinstance(copied, ManagedBuffer)
    assert download(copied, stream) == bytes(4096)


def test_read_mostly(buffer):
    assert buffer.read_mostly is False
    buffer.read_mostly = True
    assert buffer.read_mostly is True
    buffer.read_mostly = False
    assert buffer.read_mostly is False
    with pytest.raises(TypeError):
        buffer.read_mostly = 1
    with pytest.raises(AttributeError):
        del buffer.read_mostly


def test_preferred_location(buffer, device):
    assert buffer.preferred_location is None
    for place in (device, Host(), Host(0)):
        buffer.preferred_location = place
        assert buffer.preferred_location == place
    buffer.preferred_location = None
    assert buffer.preferred_location is None
    with pytest.raises(TypeError):
        buffer.preferred_location = 0


def test_memory_is_preferred_where_its_resource_says(managed, device, stream):
    with ManagedMemoryResource({"preferred_location": 0}) as pool:
        assert pool.allocate(4096, stream=stream).preferred_location == device


def test_accessed_by(buffer, device):
    live = buffer.accessed_by
    assert isinstance(live, MutableSet)
    assert set(live) == set()
    live.add(device)
    assert set(buffer.accessed_by) == {device}
    assert device in live
    assert Host() not in live
    buffer.accessed_by = [device, Host()]
    assert (len(live), live == {device, Host()}) == (2, True)
    live.discard(device)
    live.discard(device)
    assert set(live) == {Host()}
    assert live | {device} == {device, Host()}
    live |= {device}
    assert set(buffer.accessed_by) == {device, Host()}
    with pytest.raises(KeyError):
        live.remove(Host(5))
    buffer.accessed_by = ()
    assert len(live) == 0
    with pytest.raises(TypeError):
        live.add(0)
    with pytest.raises(TypeError):
        buffer.accessed_by = [device, "host"]
    assert len(live) == 0


def test_the_set_keeps_its_buffer(managed, stream, device):
    live = managed.allocate(64, stream=stream).accessed_by
    gc.collect()
    live.add(device)
    assert set(live) == {device}


def test_slices_have_advice_of_their_own(managed, stream):
    buffer = managed.allocate(2 << 20, stream=stream)
    part = buffer[: 1 << 20]
    assert isinstance(part, ManagedBuffer)
    part.read_mostly = True
    assert (part.read_mostly, buffer.read_mostly) == (True, False)
    buffer[1 << 20 :].read_mostly = True
    assert buffer.read_mostly is True


def test_empty(managed, stream, device):
    empty = managed.allocate(0, stream=stream)
    empty.read_mostly = True
    empty.prefetch(device, stream=stream)
    empty.discard(stream=stream)
    assert (empty.read_mostly, empty.preferred_location, set(empty.accessed_by)) == (False, None, set())


def test_prefetch_and_discard(buffer, device, stream, emulated):
    buffer.fill(7, stream=stream)
    for place in (device, Host(), Host(0), Host.numa_current()):
        buffer.prefetch(place, stream=stream)
    assert download(buffer, stream) == b"\7" * 4096
    buffer.discard(stream=stream)
    if emulated:  # contents that nobody may rely on are seen to be gone
        assert download(buffer, stream) == b"\xa5" * 4096
    buffer.discard_prefetch(device, stream=stream)
    buffer.fill(9, stream=stream)
    assert download(buffer, stream) == b"\11" * 4096


def test_batches(managed, device, stream):
    buffers = [managed.allocate(4096, stream=stream) for _ in range(3)]
    for each in buffers:
        each.fill(5, stream=stream)
    prefetch_batch(stream, buffers, device)
    prefetch_batch(stream, buffers, [device, Host(), device])
    assert [download(each, stream) for each in buffers] == [b"\5" * 4096] * 3
    discard_batch(stream, buffers)
    discard_prefetch_batch(stream, tuple(buffers), Host())
    discard_batch(stream, [])
    stream.sync()


@pytest.mark.parametrize("function", [prefetch_batch, discard_batch, discard_prefetch_batch])
def test_batches_refuse(function, buffer, device, stream):
    rest = () if function is discard_batch else (device,)
    with pytest.raises(TypeError, match="sequence"):
        function(stream, buffer, *rest)
    with pytest.raises(TypeError, match="ManagedBuffer"):
        function(stream, [buffer, device.allocate(64, stream=stream)], *rest)
    with pytest.raises(TypeError):
        function(None, [buffer], *rest)
    with pytest.raises(ValueError, match="legacy default stream"):
        function(LEGACY_DEFAULT_STREAM, [buffer], *rest)
    if rest:
        with pytest.raises(ValueError, match="2 locations for 1 buffers"):
            function(stream, [buffer], [device, device])
        with pytest.raises(TypeError):
            function(stream, [buffer], 0)
    closed = buffer[:64]
    closed.close()
    with pytest.raises(ClosedError):
        function(stream, [buffer, closed], *rest)


def test_after_close(buffer, device, stream):
    live = buffer.accessed_by
    buffer.close()
    buffer.close()
    for use in (
        lambda: buffer.read_mostly,
        lambda: buffer.preferred_location,
        lambda: set(live),
        lambda: live.add(device),
        lambda: setattr(buffer, "read_mostly", True),
        lambda: setattr(buffer, "preferred_location", None),
        lambda: buffer.prefetch(device, stream=stream),
        lambda: buffer.discard(stream=stream),
        lambda: memoryview(buffer),
    ):
        with pytest.raises(ClosedError):
            use()


def test_from_handle(buffer, device):
    wrapped = ManagedBuffer.from_handle(int(buffer.handle), 4096, owner=buffer)
    assert isinstance(wrapped, ManagedBuffer)
    assert (wrapped.is_managed, wrapped.owner) == (True, buffer)
    wrapped.preferred_location = device
    assert buffer.preferred_location == device


def test_memory_that_is_not_managed(device, stream):
    other = device.allocate(64, stream=stream)
    wrapped = ManagedBuffer.from_handle(int(other.handle), 64, owner=other)
    with pytest.raises(ValueError, match="CUDA_ERROR_INVALID_VALUE"):
        wrapped.read_mostly = True
    assert type(other) is Buffer


def test_places_that_are_not_there(buffer, device, stream, emulated):
    with pytest.raises(ValueError, match="CUDA_ERROR_INVALID_VALUE"):
        buffer.preferred_location = Host(1_000_000)
    assert Device(0) == device


def test_buffers_outlive_their_resource():
    run_python(
        """
        from cuda_core import Device, ManagedMemoryResource
        stream = Device(0).create_stream()
        resource = ManagedMemoryResource()
        buffer = resource.allocate(16, stream=stream)
        resource.close()
        del resource
        stream.sync()
        memoryview(buffer)[:] = b"outlives-the-mr!"
        live = buffer.accessed_by
        live.add(Device(0))
        """,
        flags=("-W", "ignore"),
    )
