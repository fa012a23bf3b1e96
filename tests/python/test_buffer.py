"""Buffer: sizes, copies in all directions, fills, slices, wrapping, protocols, closing."""

import array
import gc
import itertools
import pickle
import weakref

import pytest
from cuda_core import (
    Buffer,
    ClosedError,
    CUDAError,
    LegacyPinnedMemoryResource,
    OutOfMemoryError,
)
from support import download, upload, zeros


@pytest.fixture(scope="module")
def pinned_resource():
    return LegacyPinnedMemoryResource()


def pattern(size, seed=1):
    return bytes((seed * 131 + i * 7) % 256 for i in range(size))


# ---- what it is ----------------------------------------------------------------------------------------------------


def test_attributes(device, stream):
    buffer = device.allocate(1024, stream=stream)
    assert int(buffer.handle) != 0
    assert int(buffer.handle) % 256 == 0
    assert buffer.size == 1024
    assert buffer.device_id == 0
    assert buffer.is_device_accessible is True
    assert buffer.is_host_accessible is False
    assert buffer.is_managed is False
    assert buffer.memory_resource is device.memory_resource
    assert buffer.is_closed is False
    assert "Buffer" in repr(buffer)
    assert hex(int(buffer.handle)) in repr(buffer)


def test_identity(device, stream):
    a, b = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    assert a == a
    assert a != b
    assert hash(a) == hash(a)
    assert len({a, b}) == 2
    assert a != 5
    assert weakref.ref(a)() is a


def test_live_buffers_do_not_overlap(device, stream):
    buffers = [device.allocate(size, stream=stream) for size in (1, 3, 255, 256, 257, 4096, 100_000)]
    spans = sorted((int(buffer.handle), int(buffer.handle) + buffer.size) for buffer in buffers)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start


def test_size_zero(device, stream):
    buffer = device.allocate(0, stream=stream)
    assert buffer.size == 0
    buffer.fill(0, stream=stream)
    buffer.copy_from(b"", stream=stream)
    assert download(buffer, stream) == b""
    buffer.close()


def test_large(device, stream):
    buffer = device.allocate(64 << 20, stream=stream)
    buffer.fill(0x5A, stream=stream)
    tail = bytearray(16)
    buffer[-16:].copy_to(tail, stream=stream)
    stream.sync()
    assert tail == b"\x5a" * 16


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), (-(2**70), (ValueError, OverflowError)), (2**64, OverflowError), (2**200, OverflowError)],
)
def test_sizes_that_cannot_be(device, stream, size, error):
    with pytest.raises(error, match="size"):
        device.allocate(size, stream=stream)


def test_more_than_there_is(device, stream):
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate(1 << 46, stream=stream)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, CUDAError)
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert caught.value.code == 2
    assert str(1 << 46) in str(caught.value).replace(",", "").replace("_", "")
    # and nothing is broken by it
    assert download(upload(device, stream, b"still here"), stream) == b"still here"


# ---- copies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 64, 1000, 4096, 100_001])
def test_there_and_back(device, stream, size):
    data = pattern(size)
    assert download(upload(device, stream, data), stream) == data


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "array", "cast"])
def test_host_sources(device, stream, kind):
    data = pattern(48)
    source = {
        "bytes": data,
        "bytearray": bytearray(data),
        "memoryview": memoryview(data),
        "array": array.array("d", data),
        "cast": memoryview(data).cast("i", [3, 4]),
    }[kind]
    assert download(upload(device, stream, source), stream) == data


def test_numpy(device, stream):
    numpy = pytest.importorskip("numpy")
    source = numpy.arange(60, dtype=numpy.float64).reshape(3, 4, 5)
    buffer = upload(device, stream, source)
    result = numpy.zeros_like(source)
    buffer.copy_to(result, stream=stream)
    stream.sync()
    assert (result == source).all()
    with pytest.raises((ValueError, BufferError, TypeError)):
        buffer.copy_from(source[::2, :, ::2], stream=stream)  # not contiguous
    for transposed in (numpy.asfortranarray(source), source.T):
        with pytest.raises(ValueError, match=r"not C-contiguous: use numpy.ascontiguousarray"):
            buffer.copy_from(transposed, stream=stream)
        with pytest.raises(ValueError, match="not C-contiguous"):
            buffer.copy_to(transposed, stream=stream)
    buffer.copy_from(source.reshape(60, 1).T, stream=stream)  # the orders agree
    buffer.copy_from(numpy.asfortranarray(source.reshape(60)), stream=stream)
    frozen = numpy.zeros(60)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError, TypeError), match=r"(?i)read-?only|writ"):
        buffer.copy_to(frozen, stream=stream)


def test_device_to_device(device, stream):
    data = pattern(5000)
    source = upload(device, stream, data)
    target = zeros(device, stream, 5000)
    assert source.copy_to(target, stream=stream) is target
    assert download(target, stream) == data
    other = zeros(device, stream, 5000)
    other.copy_from(source, stream=stream)
    assert download(other, stream) == data


def test_copy_to_nothing_makes_a_buffer(device, stream):
    data = pattern(100)
    copy = upload(device, stream, data).copy_to(stream=stream)
    assert isinstance(copy, Buffer)
    assert copy.size == 100
    assert download(copy, stream) == data


def test_sizes_must_match(device, stream):
    small, large = zeros(device, stream, 16), zeros(device, stream, 32)
    for copy in (
        lambda: small.copy_to(large, stream=stream),
        lambda: large.copy_to(small, stream=stream),
        lambda: small.copy_from(large, stream=stream),
        lambda: small.copy_from(bytes(17), stream=stream),
        lambda: large.copy_from(bytes(31), stream=stream),
        lambda: small.copy_to(bytearray(15), stream=stream),
        lambda: small.copy_to(bytearray(17), stream=stream),
    ):
        with pytest.raises(ValueError, match=r"\d+") as caught:
            copy()
        assert "16" in str(caught.value) or "32" in str(caught.value)


def test_copies_refuse(device, stream):
    buffer = zeros(device, stream, 16)
    with pytest.raises(TypeError):
        buffer.copy_from(5, stream=stream)
    with pytest.raises(TypeError):
        buffer.copy_from("0123456789abcdef", stream=stream)
    with pytest.raises((TypeError, ValueError, BufferError)):
        buffer.copy_to(bytes(16), stream=stream)  # bytes cannot be written
    with pytest.raises(TypeError):
        buffer.copy_from(bytes(16))
    with pytest.raises(TypeError):
        buffer.copy_from(bytes(16), stream=None)
    with pytest.raises(TypeError):
        buffer.copy_from(bytes(16), stream=3)
    assert download(buffer, stream) == bytes(16)


def test_host_source_is_kept_alive(device, stream):
    """Dropped and overwritten memory would show in the copy."""
    size = 1 << 20
    buffers = []
    for seed in range(8):
        buffer = device.allocate(size, stream=stream)
        source = bytearray(bytes([seed + 1]) * size)
        buffer.copy_from(source, stream=stream)
        del source
        gc.collect()
        bytearray(size)  # likely where the source was
        buffers.append(buffer)
    for seed, buffer in enumerate(buffers):
        assert download(buffer, stream) == bytes([seed + 1]) * size


def test_source_and_target_are_let_go(device, stream):
    class Source(bytearray):
        pass

    buffer = zeros(device, stream, 64)
    source, target = Source(b"s" * 64), Source(64)
    references = [weakref.ref(source), weakref.ref(target)]
    buffer.copy_from(source, stream=stream)
    buffer.copy_to(target, stream=stream)
    stream.sync()
    assert target == b"s" * 64
    del source, target
    for _ in range(3):  # what is done is collected by later calls
        stream.sync()
        buffer.copy_from(bytes(64), stream=stream)
    stream.sync()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


# ---- fills ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (0, b"\x00"),
        (255, b"\xff"),
        (7, b"\x07"),
        (b"\x12", b"\x12"),
        (b"\x12\x34", b"\x12\x34"),
        (b"\x12\x34\x56\x78", b"\x12\x34\x56\x78"),
        (array.array("H", [0xBEEF]), b"\xef\xbe"),
        (array.array("f", [1.5]), b"\x00\x00\xc0\x3f"),
    ],
)
def test_fill(device, stream, value, unit):
    buffer = zeros(device, stream, 48)
    buffer.fill(value, stream=stream)
    assert download(buffer, stream) == unit * (48 // len(unit))


def test_fill_with_a_numpy_scalar(device, stream):
    numpy = pytest.importorskip("numpy")
    buffer = zeros(device, stream, 8)
    buffer.fill(numpy.float32(-2.0), stream=stream)
    assert download(buffer, stream) == numpy.float32(-2.0).tobytes() * 2
    buffer.fill(numpy.uint16(0x0102), stream=stream)
    assert download(buffer, stream) == b"\x02\x01" * 4


def test_fill_refuses(device, stream):
    buffer = zeros(device, stream, 10)
    for wrong in (256, -1, 2**70):
        with pytest.raises((ValueError, OverflowError)):
            buffer.fill(wrong, stream=stream)
    for wrong in (b"", b"123", b"12345", b"\0" * 8):
        with pytest.raises(ValueError, match=r"1, 2 or 4"):
            buffer.fill(wrong, stream=stream)
    with pytest.raises(ValueError, match="10"):
        buffer.fill(b"1234", stream=stream)  # 10 is no multiple of 4
    for wrong in ("x", None, 1.0, [1]):
        with pytest.raises(TypeError):
            buffer.fill(wrong, stream=stream)
    assert download(buffer, stream) == bytes(10)


# ---- slices --------------------------------------------------------------------------------------------------------


def test_slices(device, stream):
    data = pattern(100)
    buffer = upload(device, stream, data)
    assert len(buffer) == 100
    part = buffer[10:30]
    assert isinstance(part, Buffer)
    assert part.size == 20
    assert int(part.handle) == int(buffer.handle) + 10
    assert download(part, stream) == data[10:30]
    assert download(buffer[:5], stream) == data[:5]
    assert download(buffer[-5:], stream) == data[-5:]
    assert download(buffer[:], stream) == data
    assert download(buffer[20:40][5:10], stream) == data[25:30]
    assert buffer[50:50].size == 0
    assert buffer[90:1000].size == 10


def test_slices_make_copies_of_different_sizes_possible(device, stream):
    large = upload(device, stream, pattern(64))
    small = upload(device, stream, b"\xaa" * 16)
    small.copy_to(large[16:32], stream=stream)
    assert download(large, stream) == pattern(64)[:16] + b"\xaa" * 16 + pattern(64)[32:]
    small.copy_from(large[:16], stream=stream)
    assert download(small, stream) == pattern(64)[:16]
    large[48:].fill(1, stream=stream)
    assert download(large, stream)[48:] == b"\x01" * 16


def test_slices_keep_the_memory(device, stream):
    buffer = upload(device, stream, b"0123456789")
    part = buffer[2:6]
    del buffer
    gc.collect()
    filler = [upload(device, stream, b"x" * 10) for _ in range(4)]
    assert download(part, stream) == b"2345"
    del filler


def test_slices_refuse(device, stream):
    buffer = zeros(device, stream, 16)
    with pytest.raises((ValueError, TypeError)):
        buffer[::2]
    with pytest.raises(TypeError):
        buffer["a"]


# ---- memory of others ----------------------------------------------------------------------------------------------


def test_from_handle(device, stream):
    owner = upload(device, stream, b"abcdefgh")
    wrapped = Buffer.from_handle(int(owner.handle), 8, owner=owner)
    assert wrapped.size == 8
    assert wrapped.owner is owner
    assert wrapped.is_device_accessible
    assert wrapped.device_id == 0
    assert download(wrapped, stream) == b"abcdefgh"
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is not None
    wrapped.close()
    del wrapped
    gc.collect()
    assert reference() is None


def test_from_handle_empty():
    buffer = Buffer.from_handle(0, 0)
    assert buffer.size == 0
    assert int(buffer.handle or 0) == 0
    buffer.close()
    assert buffer.is_closed


def test_from_handle_refuses(device):
    with pytest.raises(TypeError):
        Buffer.from_handle("0", 8)
    with pytest.raises((ValueError, OverflowError)):
        Buffer.from_handle(-1, 8)
    with pytest.raises((ValueError, OverflowError)):
        Buffer.from_handle(4096, -8)
    with pytest.raises((ValueError, TypeError)):
        Buffer.from_handle(4096, 8, mr=device.memory_resource, owner=object())


def test_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        Buffer()


# ---- closing -------------------------------------------------------------------------------------------------------


def test_close(device, stream):
    buffer = device.allocate(64, stream=stream)
    before = hash(buffer)
    buffer.close()
    assert buffer.is_closed
    assert buffer.close() is None
    assert buffer.close(stream) is None
    assert hash(buffer) == before
    assert "Buffer" in repr(buffer)


def test_close_on_a_stream(device, stream):
    with device.create_stream() as other:
        buffer = upload(device, stream, pattern(64))
        other.wait(stream)
        buffer.close(other)
        assert buffer.is_closed
        buffer = device.allocate(64, stream=stream)
        buffer.close(stream=stream)
        assert buffer.is_closed


def test_close_on_a_closed_stream_is_refused_and_leaves_the_buffer(device, stream):
    closed = device.create_stream()
    closed.close()
    buffer = upload(device, stream, b"intact")
    with pytest.raises(ClosedError):
        buffer.close(closed)
    assert buffer.is_closed is False
    assert download(buffer, stream) == b"intact"
    with pytest.raises(TypeError):
        buffer.close("stream")
    assert download(buffer, stream) == b"intact"


def test_set_deallocation_stream(device, stream):
    buffer = device.allocate(64, stream=stream)
    with device.create_stream() as other:
        buffer.set_deallocation_stream(other)
        other.wait(stream)
        buffer.close()
    closed = device.create_stream()
    closed.close()
    buffer = upload(device, stream, b"intact")
    with pytest.raises(ClosedError):
        buffer.set_deallocation_stream(closed)
    with pytest.raises(TypeError):
        buffer.set_deallocation_stream("s")
    assert download(buffer, stream) == b"intact"


@pytest.mark.parametrize(
    "name", ["copy_to", "copy_from", "copied to", "copied from", "fill", "handle", "slice", "with", "dlpack"]
)
def test_use_after_close(device, stream, name):
    buffer, other = zeros(device, stream, 16), zeros(device, stream, 16)
    buffer.close()

    def use():
        if name == "copy_to":
            buffer.copy_to(other, stream=stream)
        elif name == "copy_from":
            buffer.copy_from(other, stream=stream)
        elif name == "copied to":
            other.copy_to(buffer, stream=stream)
        elif name == "copied from":
            other.copy_from(buffer, stream=stream)
        elif name == "fill":
            buffer.fill(0, stream=stream)
        elif name == "handle":
            _ = buffer.handle
        elif name == "slice":
            buffer[0:4]
        elif name == "dlpack":
            buffer.__dlpack__()
        else:
            with buffer:
                pass

    if name == "handle":
        # cuda.core gives 0 or None for a closed buffer's handle; a program that frees by hand relies on either.
        try:
            assert not buffer.handle
        except ClosedError:
            return
    else:
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_context_manager(device, stream):
    with device.allocate(16, stream=stream) as buffer:
        assert isinstance(buffer, Buffer)
    assert buffer.is_closed
    with pytest.raises(ZeroDivisionError), device.allocate(16, stream=stream) as buffer:
        _ = 1 / 0
    assert buffer.is_closed


def test_freed_after_its_last_use(device, compile):
    """The memory of a dropped buffer is not handed out while a kernel that was given it still runs."""
    from cuda_core import LaunchConfig, launch

    kernel = compile(
        """
        extern "C" __global__ void late(volatile int *wait, int rounds, int *p, int *seen)
        {
            for (int i = 0; i < rounds; i++) *wait = *wait + 1;
            *seen = *p;
        }
        """
    ).get_kernel("late")
    with device.create_stream() as one, device.create_stream() as two:
        wait, seen = zeros(device, two, 4), zeros(device, two, 4)
        buffer = upload(device, one, (1234).to_bytes(4, "little"))
        one.sync()
        two.sync()
        launch(two, LaunchConfig(grid=1, block=1), kernel, wait, 20000, buffer, seen)
        del buffer  # allocated on `one`, last used on `two`
        gc.collect()
        for _ in range(4):
            again = device.allocate(4, stream=one)
            again.fill(0xFF, stream=one)
            again.close()
        one.sync()
        assert int.from_bytes(download(seen, two), "little") == 1234


def test_pickling_is_refused_or_needs_ipc(device, stream):
    with pytest.raises((TypeError, RuntimeError)):
        pickle.dumps(device.allocate(16, stream=stream))


# ---- host-accessible buffers ---------------------------------------------------------------------------------------


def test_buffer_protocol(stream, device, pinned_resource):
    buffer = pinned_resource.allocate(32)
    view = memoryview(buffer)
    assert view.nbytes == 32
    assert view.readonly is False
    view.cast("B")[:4] = b"host"
    copy = buffer.copy_to(device.allocate(32, stream=stream), stream=stream)
    assert download(copy, stream)[:4] == b"host"


def test_exported_memory_stays(pinned_resource):
    buffer = pinned_resource.allocate(32)
    view = memoryview(buffer).cast("B")
    view[:] = bytes(range(32))
    try:
        buffer.close()
    except (BufferError, ValueError):
        assert buffer.is_closed is False
    del buffer
    gc.collect()
    assert bytes(view) == bytes(range(32))


def test_buffer_protocol_of_device_memory_is_refused(device, stream):
    buffer = device.allocate(16, stream=stream)
    with pytest.raises((BufferError, TypeError), match=r"(?i)host|copy"):
        memoryview(buffer)


# ---- DLPack --------------------------------------------------------------------------------------------------------


def test_dlpack(device, stream, pinned_resource):
    buffer = device.allocate(16, stream=stream)
    kind, ordinal = buffer.__dlpack_device__()
    assert (int(kind), ordinal) == (2, 0)
    assert "dltensor" in repr(buffer.__dlpack__())
    assert "dltensor" in repr(buffer.__dlpack__(max_version=(1, 0)))
    pinned = pinned_resource.allocate(16)
    assert int(pinned.__dlpack_device__()[0]) in (1, 3)
    assert buffer.__dlpack__(stream=-1) is not None


def test_dlpack_capsule_keeps_the_memory(device, stream):
    buffer = upload(device, stream, b"0123456789abcdef")
    address = int(buffer.handle)
    capsule = buffer.__dlpack__(stream=-1)
    del buffer
    gc.collect()
    again = [device.allocate(16, stream=stream) for _ in range(4)]
    assert address not in [int(each.handle) for each in again]
    assert download(Buffer.from_handle(address, 16), stream) == b"0123456789abcdef"
    del capsule


def test_dlpack_into_numpy(device, pinned_resource):
    numpy = pytest.importorskip("numpy")
    pinned = pinned_resource.allocate(16)
    memoryview(pinned).cast("B")[:] = bytes(range(16))
    array_ = numpy.frombuffer(pinned, dtype=numpy.uint8)
    assert array_.tolist() == list(range(16))
    array_[3] = 77
    assert memoryview(pinned).cast("B")[3] == 77


def test_numpy_array_of(device, stream, pinned_resource):
    numpy = pytest.importorskip("numpy")
    buffer = device.allocate(16, stream=stream)
    for convert in (numpy.asarray, numpy.array, Buffer.__array__):
        with pytest.raises(BufferError, match="the host cannot read device memory"):
            convert(buffer)
    pinned = pinned_resource.allocate(4, stream=stream)
    view = pinned.__array__()
    assert view.dtype == numpy.uint8
    view[:] = [1, 2, 3, 4]
    assert bytes(pinned) == b"\1\2\3\4"
    assert pinned.__array__("f4").tolist() == [1, 2, 3, 4]
    copied = pinned.__array__(copy=True)
    view[0] = 9
    assert copied[0] == 1
    assert numpy.asarray(pinned)[0] == 9
    buffer.close()
    with pytest.raises(ClosedError):
        buffer.__array__()
