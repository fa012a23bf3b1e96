"""What can be closed is a context manager, and leaving one never hides an exception."""

import pytest
from cuda_core import DeviceMemoryResource, LegacyPinnedMemoryResource, PinnedMemoryResource, Program
from support import run_python


def makers(device, stream):
    return {
        "stream": device.create_stream,
        "event": device.create_event,
        "buffer": lambda: device.allocate(16, stream=stream),
        "pinned buffer": lambda: LegacyPinnedMemoryResource().allocate(16),
        "pool": lambda: DeviceMemoryResource(device, {"max_size": 1 << 20}),
        "pinned pool": PinnedMemoryResource,
        "program": lambda: Program("", "c++"),
    }


KINDS = ["stream", "event", "buffer", "pinned buffer", "pool", "pinned pool", "program"]


@pytest.mark.parametrize("kind", KINDS)
def test_enter_gives_the_object_and_leaving_closes_it(device, stream, kind):
    made = makers(device, stream)[kind]()
    with made as entered:
        assert entered is made
        assert made.is_closed is False
    assert made.is_closed is True
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_with_an_exception(device, stream, kind):
    made = makers(device, stream)[kind]()
    with pytest.raises(ZeroDivisionError), made:
        _ = 1 / 0
    assert made.is_closed is True


@pytest.mark.parametrize("kind", KINDS)
def test_closed_inside(device, stream, kind):
    with makers(device, stream)[kind]() as made:
        made.close()
        assert made.is_closed


@pytest.mark.parametrize("kind", KINDS)
def test_entering_what_is_closed(device, stream, kind):
    made = makers(device, stream)[kind]()
    made.close()
    with pytest.raises(ValueError, match="closed"):
        made.__enter__()


FAULT = """
from cuda_core import CUDAError, Device, LaunchConfig, Program, launch
code = Program('extern "C" __global__ void bad(int *p) { *p = 1; }', "c++").compile("cubin")
kernel, one = code.get_kernel("bad"), LaunchConfig(grid=1, block=1)
device = Device(0)
"""


def test_fault_comes_out_of_the_with_block():
    process = run_python(
        FAULT
        + """
try:
    with device.create_stream() as stream:
        launch(stream, one, kernel, None)
        print("queued")
except CUDAError as error:
    print(error.name, stream.is_closed)
"""
    )
    assert process.stdout.split() == ["queued", "CUDA_ERROR_ILLEGAL_ADDRESS", "True"]


def test_fault_does_not_hide_an_exception():
    process = run_python(
        FAULT
        + """
try:
    with device.create_stream() as stream:
        launch(stream, one, kernel, None)
        raise LookupError("mine")
except LookupError as error:
    print("kept", error, stream.is_closed)
"""
    )
    assert process.stdout.split() == ["kept", "mine", "True"]


def test_nested_devices_restore_in_order():
    process = run_python(
        """
        from cuda_core import Device
        one, two = Device(0), Device(1)
        two.set_current()
        with one:
            assert Device() is one
            with two:
                assert Device() is two
                with one:
                    assert Device() is one
                assert Device() is two
            assert Device() is one
        assert Device() is two
        print("right")
        """,
        env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_DEVICES": 2},
    )
    assert process.stdout.strip() == "right"
