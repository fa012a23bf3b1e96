"""Memory resources: pools on the device, pinned memory, and those written in Python."""

import gc

import pytest
from cuda_core import (
    Buffer,
    ClosedError,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from support import download, upload


@pytest.fixture
def pool(device):
    with DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=64 << 20)) as pool:
        yield pool


# ---- pools on the device -------------------------------------------------------------------------------------------


def test_device_pool(device, stream):
    pool = DeviceMemoryResource(0)
    assert isinstance(pool, MemoryResource)
    assert pool.device_id == 0
    assert pool.is_device_accessible is True
    assert pool.is_host_accessible is False
    assert pool.is_managed is False
    assert pool.is_ipc_enabled is False
    assert pool.is_mapped is False
    assert int(pool.handle) != 0
    buffer = pool.allocate(100, stream=stream)
    assert buffer.memory_resource is pool
    assert buffer.device_id == 0
    buffer.copy_from(b"p" * 100, stream=stream)
    assert download(buffer, stream) == b"p" * 100


def test_default_pool_is_not_owned_and_a_new_one_is(device, pool):
    assert device.memory_resource.is_handle_owned is False
    assert pool.is_handle_owned is True
    assert int(pool.handle) != int(device.memory_resource.handle)


def test_options_as_a_dict(device):
    with DeviceMemoryResource(device, {"max_size": 1 << 20}) as pool:
        assert pool.is_handle_owned is True
    with pytest.raises(TypeError):
        DeviceMemoryResource(device, {"maximum": 1})
    with pytest.raises((ValueError, OverflowError)):
        DeviceMemoryResource(device, {"max_size": -1})
    with pytest.raises(TypeError):
        DeviceMemoryResource("device")
    with pytest.raises((ValueError, OverflowError)):
        DeviceMemoryResource(1_000_000)


def test_pool_attributes(device, stream, pool):
    attributes = pool.attributes
    for name in (
        "reuse_follow_event_dependencies",
        "reuse_allow_opportunistic",
        "reuse_allow_internal_dependencies",
        "release_threshold",
        "reserved_mem_current",
        "reserved_mem_high",
        "used_mem_current",
        "used_mem_high",
    ):
        assert isinstance(getattr(attributes, name), int)
    assert "pool" in repr(attributes)
    assert attributes.used_mem_current == 0
    buffer = pool.allocate(4096, stream=stream)
    stream.sync()
    assert attributes.used_mem_current >= 4096
    assert attributes.reserved_mem_current >= attributes.used_mem_current
    assert attributes.used_mem_high >= 4096
    buffer.close()
    stream.sync()
    assert attributes.used_mem_current == 0


def test_pool_at_its_limit(device, stream):
    with DeviceMemoryResource(device, {"max_size": 32 << 20}) as pool:
        held = pool.allocate(1 << 20, stream=stream)
        with pytest.raises(MemoryError):
            pool.allocate(1 << 30, stream=stream)
        held.copy_from(bytes(1 << 20), stream=stream)
        stream.sync()


def test_allocate_refuses(pool, stream):
    with pytest.raises(ValueError, match="size"):
        pool.allocate(-1, stream=stream)
    with pytest.raises(OverflowError):
        pool.allocate(2**64, stream=stream)
    with pytest.raises(TypeError):
        pool.allocate(1.5, stream=stream)
    with pytest.raises(TypeError):
        pool.allocate(16)
    with pytest.raises(TypeError):
        pool.allocate(16, stream=None)


def test_close(device, stream):
    pool = DeviceMemoryResource(device, {"max_size": 1 << 20})
    pool.close()
    assert pool.is_closed
    assert pool.close() is None
    with pytest.raises(ClosedError):
        pool.allocate(16, stream=stream)


def test_buffers_outlive_their_pool(device, stream):
    pool = DeviceMemoryResource(device, {"max_size": 1 << 20})
    buffer = pool.allocate(16, stream=stream)
    buffer.copy_from(b"outlives-the-mr!", stream=stream)
    pool.close()
    del pool
    gc.collect()
    assert download(buffer, stream) == b"outlives-the-mr!"
    buffer.close()


def test_peer_access_starts_empty(pool):
    assert list(pool.peer_accessible_by) == []


def test_peers_that_change_while_they_are_read(device, pool):
    class Number:
        def __index__(self):
            peers.clear()
            return device.device_id

    peers = [Number(), 1000]
    with pytest.raises(ValueError, match="there is no device 1000"):
        pool.peer_accessible_by = peers
    assert peers == []


def test_deallocate(pool, stream):
    """The resource frees what it is told to; the buffer that held it must not be used again."""
    with pytest.raises(TypeError):
        pool.deallocate(0, 16)
    with pytest.raises(TypeError):
        pool.deallocate("pointer", 16, stream=stream)


# ---- pinned memory -------------------------------------------------------------------------------------------------


def test_pinned_pool(device, stream):
    with PinnedMemoryResource() as pool:
        assert isinstance(pool, MemoryResource)
        assert pool.is_device_accessible is True
        assert pool.is_host_accessible is True
        assert pool.is_managed is False
        buffer = pool.allocate(64, stream=stream)
        stream.sync()
        assert buffer.is_host_accessible
        view = memoryview(buffer).cast("B")
        view[:] = bytes(range(64))
        assert download(buffer, stream) == bytes(range(64))
        view.release()
        buffer.close()
    assert PinnedMemoryResourceOptions() == PinnedMemoryResourceOptions(ipc_enabled=False, max_size=0, numa_id=None)


def test_legacy_pinned(device, stream, compile):
    from cuda_core import LaunchConfig, launch

    resource = LegacyPinnedMemoryResource()
    assert resource.is_device_accessible is True
    assert resource.is_host_accessible is True
    assert resource.is_managed is False
    buffer = resource.allocate(16)
    assert buffer.size == 16
    assert buffer.memory_resource is resource
    assert buffer.is_host_accessible
    assert buffer.is_device_accessible
    memoryview(buffer).cast("B")[:] = bytes(range(16))
    kernel = compile('extern "C" __global__ void more(unsigned char *p) { p[threadIdx.x] += 100; }').get_kernel("more")
    launch(stream, LaunchConfig(grid=1, block=16), kernel, buffer)
    stream.sync()
    assert list(memoryview(buffer).cast("B")) == [100 + i for i in range(16)]
    with_stream = resource.allocate(8, stream=stream)
    assert with_stream.size == 8
    with pytest.raises(ValueError, match="size"):
        resource.allocate(-1)
    with pytest.raises(OverflowError):
        resource.allocate(2**64)


def test_copy_between_pinned_and_device(device, stream):
    pinned = LegacyPinnedMemoryResource().allocate(1000)
    data = bytes(i % 251 for i in range(1000))
    pinned.copy_from(data, stream=stream)
    there = device.allocate(1000, stream=stream)
    there.copy_from(pinned, stream=stream)
    assert download(there, stream) == data


# ---- resources written in Python -----------------------------------------------------------------------------------


class Counting(MemoryResource):
    """Takes memory from another resource and counts."""

    def __init__(self, base):
        self.base = base
        self.held = {}
        self.log = []

    def allocate(self, size, *, stream):
        inner = self.base.allocate(size, stream=stream)
        self.held[int(inner.handle)] = inner
        self.log.append(("allocate", size))
        return Buffer.from_handle(int(inner.handle), size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        self.log.append(("deallocate", size))
        self.held.pop(int(ptr)).close(stream)

    @property
    def is_device_accessible(self):
        return True

    @property
    def is_host_accessible(self):
        return False

    @property
    def device_id(self):
        return 0


def test_python_resource(device, stream):
    resource = Counting(DeviceMemoryResource(0))
    buffer = resource.allocate(128, stream=stream)
    assert isinstance(buffer, Buffer)
    assert buffer.memory_resource is resource
    assert buffer.is_device_accessible
    buffer.copy_from(b"q" * 128, stream=stream)
    assert download(buffer, stream) == b"q" * 128
    buffer.close(stream)
    assert resource.log == [("allocate", 128), ("deallocate", 128)]
    assert resource.held == {}
    buffer.close()
    assert len(resource.log) == 2


def test_python_resource_is_told_when_a_buffer_is_dropped(device, stream):
    resource = Counting(DeviceMemoryResource(0))
    buffer = resource.allocate(64, stream=stream)
    del buffer
    gc.collect()
    stream.sync()
    assert resource.log == [("allocate", 64), ("deallocate", 64)]
    assert resource.held == {}


def test_python_resource_is_given_the_stream_of_the_last_use(device, stream):
    class Asking(Counting):
        def deallocate(self, ptr, size, *, stream):
            streams.append(stream)
            super().deallocate(ptr, size, stream=stream)

    streams = []
    resource = Asking(DeviceMemoryResource(0))
    with device.create_stream() as other:
        buffer = resource.allocate(64, stream=stream)
        buffer.fill(1, stream=stream)
        del buffer
        buffer, target = resource.allocate(64, stream=stream), resource.allocate(64, stream=stream)
        other.wait(stream)
        buffer.copy_to(target, stream=other)
        del buffer
        target.close()
        buffer = resource.allocate(64, stream=stream)
        buffer.close(other)
    assert streams == [stream, other, other, other]


def test_python_resource_lives_as_long_as_its_buffers(device, stream):
    log = []

    def make():
        resource = Counting(DeviceMemoryResource(0))
        resource.log = log
        return resource.allocate(32, stream=stream)

    buffer = make()
    gc.collect()
    assert log == [("allocate", 32)]
    buffer.close(stream)
    assert log == [("allocate", 32), ("deallocate", 32)]


def test_python_resource_of_a_device(device, stream):
    standard = device.memory_resource
    resource = Counting(standard)
    device.memory_resource = resource
    try:
        buffer = device.allocate(48, stream=stream)
        assert resource.log == [("allocate", 48)]
        copy = buffer.copy_to(stream=stream)
        assert copy.size == 48
        buffer.close(stream)
    finally:
        device.memory_resource = standard
    assert ("deallocate", 48) in resource.log


def test_error_in_a_python_resource(device, stream):
    class Broken(MemoryResource):
        def allocate(self, size, *, stream):
            raise LookupError("no memory today")

        def deallocate(self, ptr, size, *, stream):
            raise AssertionError("never allocated")

    standard = device.memory_resource
    device.memory_resource = Broken()
    try:
        with pytest.raises(LookupError, match="today"):
            device.allocate(16, stream=stream)
    finally:
        device.memory_resource = standard


def test_error_in_deallocate(device, stream, monkeypatch):
    """It is raised by close(), or reported as any error in a finaliser is; the buffer is closed either way."""
    import sys

    class Broken(MemoryResource):
        def allocate(self, size, *, stream):
            self.inner = standard.allocate(size, stream=stream)
            return Buffer.from_handle(int(self.inner.handle), size, mr=self)

        def deallocate(self, ptr, size, *, stream):
            raise LookupError("cannot free")

    standard = device.memory_resource
    buffer = Broken().allocate(16, stream=stream)
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: seen.append(report.exc_value))
    try:
        buffer.close(stream)
    except LookupError as error:
        seen.append(error)
    assert [str(error) for error in seen] == ["cannot free"]
    assert buffer.is_closed


def test_base_class_says_what_is_missing(stream):
    class Empty(MemoryResource):
        pass

    with pytest.raises((TypeError, NotImplementedError)):
        Empty().allocate(16, stream=stream)
    with pytest.raises((TypeError, NotImplementedError)):
        Empty().deallocate(0, 16, stream=stream)


def test_upload_through_a_pool(pool, device, stream):
    buffer = pool.allocate(8, stream=stream)
    upload(device, stream, b"12345678").copy_to(buffer, stream=stream)
    assert download(buffer, stream) == b"12345678"
