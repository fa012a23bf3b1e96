"""Data of other libraries. One that is not installed is skipped by its name; a GPU library without a GPU, too."""

import pytest
from cuda_core import Buffer, LaunchConfig, LegacyPinnedMemoryResource, Stream, launch
from support import download, upload

SCALE = """
extern "C" __global__ void scale(float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


@pytest.fixture(scope="module")
def scale(compile):
    return compile(SCALE).get_kernel("scale")


@pytest.fixture
def torch(emulated):
    torch = pytest.importorskip("torch")
    if emulated:
        pytest.skip("torch sees no GPU here")
    return torch


@pytest.fixture
def cupy(emulated):
    cupy = pytest.importorskip("cupy")
    if emulated:
        pytest.skip("cupy sees no GPU here")
    return cupy


CONFIG = LaunchConfig(grid=4, block=32)


def test_numpy_view_of_pinned_memory(device, stream, scale):
    numpy = pytest.importorskip("numpy")
    pinned = LegacyPinnedMemoryResource().allocate(400)
    array = numpy.frombuffer(pinned, dtype=numpy.float32)
    array[:] = numpy.arange(100)
    launch(stream, CONFIG, scale, pinned, 0.5, 100)
    stream.sync()
    assert (array == numpy.arange(100) / 2).all()


def test_numpy_from_dlpack_of_pinned_memory(device, stream):
    numpy = pytest.importorskip("numpy")
    pinned = LegacyPinnedMemoryResource().allocate(16)
    try:
        array = numpy.from_dlpack(pinned)
    except (BufferError, RuntimeError, TypeError):
        array = numpy.frombuffer(pinned, dtype=numpy.uint8)  # NumPy takes DLPack of kDLCPU alone
    array[:] = range(16)
    assert bytes(memoryview(pinned)) == bytes(range(16))


def test_numpy_of_many_types(device, stream):
    numpy = pytest.importorskip("numpy")
    for dtype in ("i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "?", "datetime64[s]", "i4,f8"):
        array = numpy.zeros(10, dtype=dtype)
        array.view(numpy.uint8)[:] = numpy.arange(array.nbytes) % 251
        buffer = upload(device, stream, array.view(numpy.uint8))
        assert download(buffer, stream) == array.tobytes()


def test_ml_dtypes_scalar(device, stream, compile):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = """
    #include <cuda_bf16.h>
    extern "C" __global__ void keep(float *out, __nv_bfloat16 x) { *out = __bfloat162float(x); }
    """
    out = device.allocate(4, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), compile(source).get_kernel("keep"), out, ml_dtypes.bfloat16(1.5))
    assert memoryview(download(out, stream)).cast("f")[0] == 1.5


def test_torch_tensor_as_an_argument(device, stream, scale, torch):
    x = torch.arange(100, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    launch(stream, CONFIG, scale, x, 3.0, 100)
    stream.sync()
    assert (x.cpu() == 3 * torch.arange(100)).all()
    with pytest.raises((TypeError, ValueError), match=r"(?i)host|cpu|copy"):
        launch(stream, CONFIG, scale, x.cpu(), 3.0, 100)


def test_torch_from_dlpack(device, stream, torch):
    buffer = upload(device, stream, bytes(range(64)))
    stream.sync()
    tensor = torch.utils.dlpack.from_dlpack(buffer)
    assert tensor.cpu().view(torch.uint8).flatten().tolist() == list(range(64))
    del buffer
    assert tensor.cpu().view(torch.uint8).flatten().tolist() == list(range(64))


def test_torch_stream(device, scale, torch):
    theirs = torch.cuda.Stream()
    stream = Stream.from_handle(theirs.cuda_stream)
    with torch.cuda.stream(theirs):
        x = torch.ones(100, device="cuda")
        launch(stream, CONFIG, scale, x, 4.0, 100)
        total = x.sum()
    theirs.synchronize()
    assert total.item() == 400


def test_cupy_array_as_an_argument(device, stream, scale, cupy):
    x = cupy.arange(100, dtype=cupy.float32)
    cupy.cuda.Device().synchronize()
    launch(stream, CONFIG, scale, x, 3.0, 100)
    stream.sync()
    assert (cupy.asnumpy(x) == 3 * cupy.asnumpy(cupy.arange(100))).all()


def test_cupy_from_dlpack(device, stream, cupy):
    buffer = upload(device, stream, bytes(range(64)))
    stream.sync()
    assert cupy.asnumpy(cupy.from_dlpack(buffer)).view("u1").tolist() == list(range(64))


def test_cupy_memory_wrapped(device, stream, cupy):
    x = cupy.arange(16, dtype=cupy.uint8)
    cupy.cuda.Device().synchronize()
    buffer = Buffer.from_handle(x.data.ptr, x.nbytes, owner=x)
    assert download(buffer, stream) == bytes(range(16))
