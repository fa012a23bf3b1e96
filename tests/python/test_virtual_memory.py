"""VirtualMemoryResource: memory whose addresses are reserved first, and that grows without a copy."""

import gc

import pytest
from cuda_core import (
    Buffer,
    ClosedError,
    CUDAError,
    Device,
    LaunchConfig,
    MemoryResource,
    NotSupportedError,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
)
from cuda_core.typing import VirtualMemoryHandleType, VirtualMemoryLocationType
from support import download

PIECE = 2 << 20
SOURCE = 'extern "C" __global__ void put(int *p, int v) { *p = v; }'


@pytest.fixture
def resource(device):
    if not device.properties.virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory management")
    return VirtualMemoryResource(device)


def test_allocate(device, stream, resource, compile):
    assert isinstance(resource, MemoryResource)
    assert (resource.device_id, resource.is_device_accessible, resource.is_host_accessible) == (0, True, False)
    assert resource.config == VirtualMemoryResourceOptions()
    buffer = resource.allocate(1000)
    assert (buffer.size, buffer.memory_resource, buffer.device_id) == (1000, resource, 0)
    assert int(buffer.handle) % PIECE == 0
    launch(stream, LaunchConfig(grid=1, block=1), compile(SOURCE).get_kernel("put"), buffer, 7)
    assert download(buffer[:4], stream) == b"\7\0\0\0"
    assert resource.allocate(0).size == 0
    buffer.close()
    assert buffer.is_closed


def test_growth_in_place(stream, resource):
    buffer = resource.allocate(PIECE - 8)
    address, whole = int(buffer.handle), buffer[:]
    buffer.fill(1, stream=stream)
    assert resource.modify_allocation(buffer, PIECE) is buffer  # what is mapped already
    assert resource.modify_allocation(buffer, 100) is buffer
    assert buffer.size == PIECE
    grown = resource.modify_allocation(buffer, 3 * PIECE + 1)
    if grown is buffer:  # nothing else lay behind it
        assert int(grown.handle) == address
    assert grown.size == 3 * PIECE + 1
    grown[PIECE:].fill(2, stream=stream)
    assert download(grown, stream) == b"\1" * (PIECE - 8) + download(grown[PIECE - 8 : PIECE], stream) + b"\2" * (
        2 * PIECE + 1
    )
    assert whole.size == PIECE - 8
    assert download(whole[:8], stream) == b"\1" * 8


def test_growth_elsewhere(stream, resource):
    buffer = resource.allocate(PIECE)
    behind = VirtualMemoryResource(0, {"addr_hint": int(buffer.handle) + PIECE}).allocate(PIECE)
    if int(behind.handle) != int(buffer.handle) + PIECE:
        pytest.skip("the driver gave other addresses than the ones wanted")
    buffer.fill(3, stream=stream)
    part = buffer[16:32]
    grown = resource.modify_allocation(buffer, 2 * PIECE)
    assert grown is not buffer
    assert buffer.is_closed
    assert download(grown[:PIECE], stream) == b"\3" * PIECE
    part.fill(4, stream=stream)  # the same memory, at its old address
    assert download(grown[16:32], stream) == download(part, stream) == b"\4" * 16
    part.close()
    assert download(grown[16:32], stream) == b"\4" * 16
    behind.close()


def test_growth_by_another_configuration(stream, resource, emulated):
    options = VirtualMemoryResourceOptions(self_access="r")
    buffer = resource.modify_allocation(resource.allocate(PIECE), 2 * PIECE, options)
    assert resource.config is options
    if emulated:  # a GPU is lost by a write that it may not do
        with pytest.raises(CUDAError, match="may not write the destination"):
            buffer.fill(1, stream=stream)


def test_bad_buffers_and_sizes(device, stream, resource):
    buffer = resource.allocate(PIECE)
    for wrong, error in (
        (buffer[:8], ValueError),
        (device.allocate(8, stream=stream), ValueError),
        (VirtualMemoryResource(0).allocate(8), ValueError),
        (Buffer.from_handle(0, 0), ValueError),
        (None, TypeError),
    ):
        with pytest.raises(error):
            resource.modify_allocation(wrong, 2 * PIECE)
    for size, error in (
        (-1, ValueError),
        (1.5, TypeError),
        (2**64, OverflowError),
        (1 << 62, (CUDAError, OverflowError)),
    ):
        with pytest.raises(error):
            resource.modify_allocation(buffer, size)
        with pytest.raises(error):
            resource.allocate(size)
    assert buffer.size == PIECE
    with pytest.raises(TypeError):
        resource.allocate(8, stream="stream")
    buffer.close()
    buffer.close()
    with pytest.raises(ClosedError):
        resource.modify_allocation(buffer, 2 * PIECE)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"handle_type": "nonsense"}, ValueError),
        ({"handle_type": VirtualMemoryHandleType.WIN32_KMT}, NotSupportedError),
        ({"location_type": "moon"}, ValueError),
        ({"granularity": 3}, TypeError),
        ({"self_access": "w"}, ValueError),
        ({"peers": [99]}, ValueError),
        ({"peers": ["a"]}, TypeError),
        ({"addr_align": 3}, ValueError),
        ({"addr_hint": -1}, (ValueError, OverflowError)),
        ({"unknown": 1}, TypeError),
        (3, TypeError),
    ],
)
def test_bad_options(resource, options, error):
    with pytest.raises(error):
        VirtualMemoryResource(0, options)


def test_host_memory(stream, emulated):
    if not emulated:
        pytest.skip("not every driver maps host memory")
    resource = VirtualMemoryResource(0, {"location_type": VirtualMemoryLocationType.HOST})
    assert (resource.device_id, resource.is_host_accessible) == (-1, True)
    buffer = resource.allocate(16)
    buffer.fill(5, stream=stream)
    stream.sync()
    assert bytes(memoryview(buffer)) == b"\5" * 16


def test_memory_comes_back(resource):
    if not Device(0).is_emulated:
        pytest.skip("other processes use a GPU's memory too")
    for _ in range(64):  # 64 times 1 GiB: more than the device has
        resource.modify_allocation(resource.allocate(PIECE), 1 << 30)
    gc.collect()
