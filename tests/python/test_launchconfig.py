"""LaunchConfig: shapes, defaults, equality, bad values."""

import pytest
from cuda_core import LaunchConfig


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (1, (1, 1, 1)),
        (7, (7, 1, 1)),
        ((7,), (7, 1, 1)),
        ((7, 6), (7, 6, 1)),
        ((7, 6, 5), (7, 6, 5)),
        ([2, 3], (2, 3, 1)),
    ],
)
def test_shapes(given, kept):
    config = LaunchConfig(grid=given, block=given)
    assert config.grid == kept
    assert config.block == kept


def test_defaults():
    config = LaunchConfig(grid=2, block=3)
    assert config.shmem_size == 0
    assert config.cluster is None
    assert config.is_cooperative is False
    assert config.programmatic_stream_serialization in (False, None)


def test_positional_order():
    config = LaunchConfig((1, 2, 3), None, (4, 5, 6), 64, False)
    assert config.grid == (1, 2, 3)
    assert config.block == (4, 5, 6)
    assert config.shmem_size == 64


def test_numpy_integers():
    numpy = pytest.importorskip("numpy")
    config = LaunchConfig(grid=numpy.int64(5), block=(numpy.int32(4), 2), shmem_size=numpy.uint16(8))
    assert (config.grid, config.block, config.shmem_size) == ((5, 1, 1), (4, 2, 1), 8)


def test_equality_and_hash():
    a, b = LaunchConfig(grid=2, block=(3, 1)), LaunchConfig(grid=(2, 1, 1), block=3)
    assert a == b
    assert hash(a) == hash(b)
    assert a != LaunchConfig(grid=2, block=4)
    assert a != LaunchConfig(grid=2, block=3, shmem_size=1)
    assert a != (2, 3)
    assert len({a, b}) == 1


def test_repr_can_be_read():
    text = repr(LaunchConfig(grid=(2, 3), block=64, shmem_size=16))
    assert text.startswith("LaunchConfig(")
    for part in ("2", "3", "64", "16"):
        assert part in text


@pytest.mark.parametrize("field", ["grid", "block"])
@pytest.mark.parametrize("value", [0, -1, (1, 0), (1, 1, -5), (), (1, 2, 3, 4), 2**32, 2**100])
def test_values_that_cannot_be(field, value):
    with pytest.raises((ValueError, OverflowError), match=field):
        LaunchConfig(**{"grid": 1, "block": 1, field: value})


@pytest.mark.parametrize("field", ["grid", "block"])
def test_list_that_changes_while_it_is_read(field):
    class Number:
        def __index__(self):
            extents.clear()
            return 2

    extents = [Number(), 3, 4]
    assert getattr(LaunchConfig(**{"grid": 1, "block": 1, field: extents}), field) == (2, 3, 4)
    assert extents == []


@pytest.mark.parametrize("field", ["grid", "block"])
@pytest.mark.parametrize("value", ["4", 4.0, None, (1, "2"), (1, 2.5), {1, 2}])
def test_wrong_types(field, value):
    with pytest.raises((TypeError, ValueError) if value is None else TypeError, match=field):
        LaunchConfig(**{"grid": 1, "block": 1, field: value})


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (2**40, (ValueError, OverflowError)), ("1", TypeError), (1.5, TypeError)]
)
def test_shared_memory(value, error):
    with pytest.raises(error, match="shmem_size"):
        LaunchConfig(grid=1, block=1, shmem_size=value)


def test_missing_and_unknown():
    with pytest.raises((TypeError, ValueError)):
        LaunchConfig(grid=1)
    with pytest.raises((TypeError, ValueError)):
        LaunchConfig(block=1)
    with pytest.raises(TypeError, match="blocks"):
        LaunchConfig(grid=1, blocks=1)


def test_cluster():
    assert LaunchConfig(grid=2, cluster=2, block=32).cluster == (2, 1, 1)
    with pytest.raises(ValueError, match="cluster"):
        LaunchConfig(grid=2, cluster=0, block=32)


def test_cooperative():
    assert LaunchConfig(grid=1, block=1, is_cooperative=True).is_cooperative is True


def test_a_second_argument_is_the_cluster():
    with pytest.raises(TypeError, match=r"needs a block: LaunchConfig\(grid=4, block=256\); .* is the cluster"):
        LaunchConfig(4, 256)
