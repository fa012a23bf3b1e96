"""launch: shapes as the kernel sees them, limits, streams, what it refuses."""

import gc
import struct

import pytest
from cuda_core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    ClosedError,
    LaunchConfig,
    launch,
)
from support import download, zeros

SOURCE = """
extern "C" __global__ void shape(int *out)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int *p = out + 6 * (block * threads + thread);
    p[0] = blockIdx.x; p[1] = blockIdx.y; p[2] = blockIdx.z;
    p[3] = threadIdx.x; p[4] = threadIdx.y; p[5] = threadIdx.z;
}
extern "C" __global__ void count(int *cell) { atomicAdd(cell, 1); }
extern "C" __global__ void dynamic(int *out, int n)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i * i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = s[n - 1 - i];
}
extern "C" __global__ void __launch_bounds__(64) bounded(int *cell) { atomicAdd(cell, 1); }
"""


@pytest.fixture(scope="module")
def module(compile):
    return compile(SOURCE)


@pytest.fixture(scope="module")
def count(module):
    return module.get_kernel("count")


@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (5, 3), (2, 33), ((2, 3), (4, 5)), ((2, 3, 4), (3, 2, 2)), ((1, 1, 3), (1, 1, 7)), ((3, 1, 2), (64, 2))],
)
def test_indices(device, stream, module, grid, block):
    config = LaunchConfig(grid=grid, block=block)
    (gx, gy, gz), (bx, by, bz) = config.grid, config.block
    total = gx * gy * gz * bx * by * bz
    out = zeros(device, stream, 24 * total)
    launch(stream, config, module.get_kernel("shape"), out)
    values = struct.unpack(f"<{6 * total}i", download(out, stream))
    expected = [
        index
        for z in range(gz)
        for y in range(gy)
        for x in range(gx)
        for tz in range(bz)
        for ty in range(by)
        for tx in range(bx)
        for index in (x, y, z, tx, ty, tz)
    ]
    assert list(values) == expected


def counted(device, stream, kernel, config):
    cell = zeros(device, stream, 4)
    assert launch(stream, config, kernel, cell) is None
    return int.from_bytes(download(cell, stream), "little")


@pytest.mark.parametrize(("grid", "block"), [(1, 1024), (70000, 1), ((1, 300), (8, 8, 16)), (1000, 96)])
def test_every_thread_runs_once(device, stream, count, grid, block):
    config = LaunchConfig(grid=grid, block=block)
    threads = 1
    for n in (*config.grid, *config.block):
        threads *= n
    assert counted(device, stream, count, config) == threads


def test_streams(device, stream, count):
    config = LaunchConfig(grid=2, block=32)

    class Foreign:
        def __cuda_stream__(self):
            return (0, int(stream.handle))

    for each in (stream, LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, device.default_stream):
        assert counted(device, each, count, config) == 64
    cell = zeros(device, stream, 4)
    launch(Foreign(), config, count, cell)
    assert download(cell, stream) == (64).to_bytes(4, "little")


def test_many_launches_in_order(device, stream, count):
    cell = zeros(device, stream, 4)
    for _ in range(2000):
        launch(stream, LaunchConfig(grid=1, block=1), count, cell)
    assert int.from_bytes(download(cell, stream), "little") == 2000


@pytest.mark.parametrize("size", [4, 1024, 48 * 1024])
def test_dynamic_shared_memory(device, stream, module, size):
    n = size // 4
    out = zeros(device, stream, size)
    launch(stream, LaunchConfig(grid=1, block=128, shmem_size=size), module.get_kernel("dynamic"), out, n)
    assert list(struct.unpack(f"<{n}I", download(out, stream))) == [i * i & 0xFFFFFFFF for i in reversed(range(n))]


def test_shared_memory_beyond_the_first_limit(device, stream, module):
    """CUDA wants more than 48 KiB to be asked for beforehand; a launch that says how much it wants has asked."""
    size = min(device.properties.max_shared_memory_per_block_optin, 96 * 1024)
    n = size // 4
    out = zeros(device, stream, size)
    launch(stream, LaunchConfig(grid=1, block=128, shmem_size=size), module.get_kernel("dynamic"), out, n)
    expected = [i * i & 0xFFFFFFFF for i in reversed(range(n))]
    assert list(struct.unpack(f"<{n}I", download(out, stream))) == expected


# ---- limits: each message names the limit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"block": 1025}, "1024"),
        ({"block": (32, 33)}, "1024"),
        ({"block": (1, 1025)}, "1024"),
        ({"block": (1, 1, 65)}, "64"),
        ({"grid": (1, 65536)}, "65535"),
        ({"grid": (1, 1, 65536)}, "65535"),
        ({"grid": 2**31}, "2147483647"),
    ],
)
def test_over_a_limit(device, stream, count, fields, limit):
    cell = zeros(device, stream, 4)
    with pytest.raises(ValueError, match=r"block|grid") as caught:
        launch(stream, LaunchConfig(**{"grid": 1, "block": 1, **fields}), count, cell)
    assert limit in str(caught.value).replace(",", "").replace("_", "")
    assert download(cell, stream) == bytes(4)  # nothing ran, and the stream still works


def test_over_the_shared_memory_limit(device, stream, module):
    out = zeros(device, stream, 4)
    limit = device.properties.max_shared_memory_per_block_optin
    with pytest.raises(ValueError, match="shared") as caught:
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=limit + 1), module.get_kernel("dynamic"), out, 1)
    assert any(str(n) in str(caught.value) for n in (limit, device.properties.max_shared_memory_per_block))
    assert download(out, stream) == bytes(4)


def test_over_the_limit_of_the_kernel(device, stream, module):
    kernel = module.get_kernel("bounded")
    assert counted(device, stream, kernel, LaunchConfig(grid=1, block=64)) == 64
    with pytest.raises(ValueError, match="64"):
        launch(stream, LaunchConfig(grid=1, block=65), kernel, zeros(device, stream, 4))


# ---- what it refuses -----------------------------------------------------------------------------------------------


def test_wrong_kinds(device, stream, count):
    config, cell = LaunchConfig(grid=1, block=1), zeros(device, stream, 4)
    for arguments in (
        (None, config, count, cell),
        (5, config, count, cell),
        (stream, None, count, cell),
        (stream, (1, 1), count, cell),
        (stream, config, "count", cell),
        (stream, config, None, cell),
        (stream, config),
        (stream,),
        (),
    ):
        with pytest.raises(TypeError):
            launch(*arguments)
    assert download(cell, stream) == bytes(4)


def test_closed_stream(device, stream, count):
    closed = device.create_stream()
    closed.close()
    with pytest.raises(ClosedError):
        launch(closed, LaunchConfig(grid=1, block=1), count, zeros(device, stream, 4))


def test_objects_dropped_right_after_the_launch(device, compile):
    code = compile('extern "C" __global__ void fill(int *p, int v) { p[threadIdx.x] = v; }')
    result = bytearray(128)
    stream = device.create_stream()
    buffer = zeros(device, stream, 128)
    launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("fill"), buffer, 3)
    buffer.copy_to(result, stream=stream)
    del buffer, code
    gc.collect()
    stream.sync()
    stream.close()
    assert bytes(result) == (3).to_bytes(4, "little") * 32


def test_cooperative(device, stream, count):
    if device.properties.cooperative_launch:
        assert counted(device, stream, count, LaunchConfig(grid=2, block=64, is_cooperative=True)) == 128


def test_cluster_needs_hardware(device, stream, count):
    cell = zeros(device, stream, 4)
    config = LaunchConfig(grid=2, cluster=2, block=32)  # two clusters of two blocks
    if device.compute_capability < (9, 0):
        with pytest.raises((ValueError, NotImplementedError), match="cluster"):
            launch(stream, config, count, cell)
        assert download(cell, stream) == bytes(4)
    else:
        launch(stream, config, count, cell)
        assert int.from_bytes(download(cell, stream), "little") == 128


def test_foreign_array_whose_memory_is_let_go_of_meanwhile(device, stream, compile):
    """What __dlpack__ handed out is kept until the kernel is queued, as if another thread had closed the Buffer."""
    source = 'extern "C" __global__ void put(int *cell, int value, int *other) { *cell = value; *other = *cell; }'
    put = compile(source).get_kernel("put")
    buffer, other = zeros(device, stream, 4), zeros(device, stream, 4)

    class Array:
        __dlpack__, __dlpack_device__ = buffer.__dlpack__, buffer.__dlpack_device__

    class Closing:
        def __index__(self):
            buffer.close()
            return 42

    launch(stream, LaunchConfig(grid=1, block=1), put, Array(), Closing(), other)
    assert buffer.is_closed
    assert struct.unpack("<i", download(other, stream)) == (42,)
