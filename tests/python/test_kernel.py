"""Kernel: arguments, attributes, occupancy, wrapping."""

import pickle
import weakref

import pytest
from cuda_core import Kernel, LaunchConfig, launch
from support import download, zeros

SOURCE = """
struct Pair { char c; double d; };
extern "C" __global__ void mixed(char a, short b, int c, double d, float *e, Pair f, char g)
{
    *e = a + b + c + d + f.d + g;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void __launch_bounds__(128) bounded(int *p) { *p = 1; }
extern "C" __global__ void shared(int *p)
{
    __shared__ int s[256];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[255 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def module(compile):
    return compile(SOURCE)


def test_num_arguments(module):
    assert module.get_kernel("mixed").num_arguments == 7
    assert module.get_kernel("nothing").num_arguments == 0
    assert module.get_kernel("bounded").num_arguments == 1


def test_arguments_info(module):
    info = module.get_kernel("mixed").arguments_info
    assert [(each.offset, each.size) for each in info] == [
        (0, 1),
        (2, 2),
        (4, 4),
        (8, 8),
        (16, 8),
        (24, 16),
        (40, 1),
    ]
    assert list(module.get_kernel("nothing").arguments_info) == []


def test_identity(module):
    a, b = module.get_kernel("mixed"), module.get_kernel("mixed")
    assert a == b
    assert hash(a) == hash(b)
    assert a != module.get_kernel("nothing")
    assert a != "mixed"
    assert int(a.handle) != 0
    assert int(a.handle) == int(b.handle)
    assert weakref.ref(a)() is a
    assert "Kernel" in repr(a)


def test_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        Kernel()


ATTRIBUTES = [
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
    "cluster_size_must_be_set",
    "required_cluster_width",
    "required_cluster_height",
    "required_cluster_depth",
    "non_portable_cluster_size_allowed",
    "cluster_scheduling_policy_preference",
]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute(device, module, name):
    attributes = module.get_kernel("shared").attributes
    value = getattr(attributes, name)
    assert isinstance(value, int)
    assert getattr(attributes[device], name) == value
    assert getattr(attributes[0], name) == value


def test_attribute_values(device, module, emulated):
    shared = module.get_kernel("shared").attributes
    assert shared.shared_size_bytes == 1024
    assert shared.max_threads_per_block == 1024
    assert shared.local_size_bytes == 0
    assert shared.num_regs > 0
    assert module.get_kernel("bounded").attributes.max_threads_per_block == 128
    assert module.get_kernel("nothing").attributes.shared_size_bytes == 0
    assert shared.ptx_version == int(device.arch)
    if not emulated:
        assert shared.binary_version == int(device.arch)


def test_attributes_of_a_device_that_is_not_there(module):
    with pytest.raises((ValueError, KeyError, IndexError)):
        module.get_kernel("shared").attributes[1_000_000]
    with pytest.raises(TypeError):
        module.get_kernel("shared").attributes["device"]
    with pytest.raises(AttributeError):
        _ = module.get_kernel("shared").attributes.num_registers


def test_from_handle(device, stream, module):
    kernel = module.get_kernel("bounded")
    for wrapped in (Kernel.from_handle(int(kernel.handle)), Kernel.from_handle(int(kernel.handle), module)):
        assert wrapped == kernel
        out = zeros(device, stream, 4)
        launch(stream, LaunchConfig(grid=1, block=1), wrapped, out)
        assert download(out, stream) == (1).to_bytes(4, "little")
    with pytest.raises(TypeError):
        Kernel.from_handle("k")
    with pytest.raises(TypeError):
        Kernel.from_handle(int(kernel.handle), 5)


def test_occupancy(device, module):
    occupancy = module.get_kernel("shared").occupancy
    blocks = occupancy.max_active_blocks_per_multiprocessor(256, 0)
    assert 1 <= blocks <= device.properties.max_threads_per_multiprocessor // 256
    grid, block = occupancy.max_potential_block_size(0, 0)
    assert grid >= 1
    assert 32 <= block <= 1024
    _, limited = occupancy.max_potential_block_size(0, 128)
    assert limited <= 128
    free = occupancy.available_dynamic_shared_memory_per_block(1, 256)
    assert 0 < free <= device.properties.max_shared_memory_per_multiprocessor


def test_results_can_be_pickled(device, compile):
    kernel = compile(SOURCE).get_kernel("mixed")
    for value in (*kernel.arguments_info, kernel.occupancy.max_potential_block_size(0, 0), device.compute_capability):
        again = pickle.loads(pickle.dumps(value))
        assert again == value
        assert type(again) is type(value)
    info = kernel.arguments_info[0]
    assert pickle.loads(pickle.dumps(info)).type == info.type
