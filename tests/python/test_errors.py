"""The exceptions: their kinds, what they carry, and that nothing pending is lost."""

import pytest
from cuda_core import (
    ClosedError,
    CompileError,
    CUDAError,
    Device,
    EmulatedDeviceWarning,
    LaunchConfig,
    NotSupportedError,
    OutOfMemoryError,
    Program,
    launch,
)
from support import download, run_python, zeros


def test_kinds():
    """Each is what a Python programmer would catch."""
    assert issubclass(CUDAError, RuntimeError)
    assert issubclass(OutOfMemoryError, CUDAError)
    assert issubclass(OutOfMemoryError, MemoryError)
    assert issubclass(NotSupportedError, CUDAError)
    assert issubclass(NotSupportedError, NotImplementedError)
    assert issubclass(CompileError, CUDAError)
    assert issubclass(ClosedError, ValueError)
    assert issubclass(ClosedError, RuntimeError)
    assert issubclass(EmulatedDeviceWarning, UserWarning)


def test_made_from_one_string():
    error = CUDAError("CUDA_ERROR_INVALID_VALUE: something")
    assert str(error) == "CUDA_ERROR_INVALID_VALUE: something"
    assert (error.code, error.name, error.function) == (None, None, None)
    assert CompileError("broken").log is None
    with pytest.raises(CUDAError, match="raised by hand"):
        raise CUDAError("raised by hand")


def test_error_of_the_driver_has_code_name_and_function(device, stream):
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate(1 << 46, stream=stream)
    error = caught.value
    assert error.code == 2
    assert error.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert error.function.startswith("cuMem")
    assert error.name in str(error)


def test_names_are_in_cuda_core(device):
    assert CUDAError.__module__ == "cuda_core"
    assert CompileError.__module__ == "cuda_core"
    assert Device.__module__ == "cuda_core"


def test_errors_can_be_pickled():
    import pickle

    error = pickle.loads(pickle.dumps(CUDAError("text")))
    assert type(error) is CUDAError
    assert str(error) == "text"


def test_an_error_leaves_the_device_usable(device, stream, compile):
    kernel = compile('extern "C" __global__ void one(int *p) { *p = 1; }').get_kernel("one")
    out = zeros(device, stream, 4)
    for _ in range(3):
        with pytest.raises(ValueError, match="1024"):
            launch(stream, LaunchConfig(grid=1, block=4096), kernel, out)
        with pytest.raises(TypeError):
            launch(stream, LaunchConfig(grid=1, block=1), kernel)
        with pytest.raises(MemoryError):
            device.allocate(1 << 46, stream=stream)
        with pytest.raises(CompileError):
            Program("nonsense;", "c++").compile("ptx")
    launch(stream, LaunchConfig(grid=1, block=1), kernel, out)
    assert download(out, stream) == (1).to_bytes(4, "little")


def test_error_of_a_users_object_is_kept(device, stream, compile):
    """An exception that a protocol method raises arrives as it was raised."""

    class Bad:
        def __cuda_stream__(self):
            raise LookupError("from __cuda_stream__")

        def __index__(self):
            raise LookupError("from __index__")

    with pytest.raises(LookupError, match="from __cuda_stream__"):
        device.create_stream(Bad())
    with pytest.raises(LookupError, match="from __cuda_stream__"):
        device.allocate(16, stream=Bad())
    with pytest.raises(LookupError, match="from __index__"):
        device.allocate(Bad(), stream=stream)
    with pytest.raises(LookupError, match="from __index__"):
        LaunchConfig(grid=Bad(), block=1)
    kernel = compile('extern "C" __global__ void number(int n) {}').get_kernel("number")
    with pytest.raises(LookupError, match="from __index__"):
        launch(stream, LaunchConfig(grid=1, block=1), kernel, Bad())


@pytest.mark.parametrize("answer", [None, 5, (), (0,), (0, "x"), (1, 0), (0, -1), "ab"])
def test_stream_protocol_that_answers_nonsense(device, answer):
    class Bad:
        def __cuda_stream__(self):
            return answer

    with pytest.raises((TypeError, ValueError, RuntimeError, OverflowError)):
        device.create_stream(Bad())


def test_traceback_of_a_kernel_fault_names_the_call():
    process = run_python(
        """
        from cuda_core import CUDAError, Device, LaunchConfig, Program, launch
        device = Device(0)
        stream = device.create_stream()
        kernel = Program('extern "C" __global__ void bad(int *p) { *p = 1; }', "c++").compile("cubin").get_kernel("bad")
        launch(stream, LaunchConfig(grid=1, block=1), kernel, None)
        try:
            stream.sync()
        except CUDAError as error:
            print(error.code, error.name, error.function)
        """
    )
    assert process.stdout.split()[:2] == ["700", "CUDA_ERROR_ILLEGAL_ADDRESS"]
    assert process.stdout.split()[2].startswith("cuStreamSynchronize")
