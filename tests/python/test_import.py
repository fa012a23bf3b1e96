"""What importing the package costs, held by counts in fresh processes."""

import sysconfig

import pytest
from support import run_python


def test_import_opens_no_library_and_no_numpy():
    process = run_python(
        """
        import sys
        before = set(sys.modules)
        import cuda_core
        after = set(sys.modules) - before
        maps = open("/proc/self/maps").read()
        modules = ("numpy", "cuda", "torch", "cupy", "dataclasses", "inspect", "ctypes")
        print([name for name in modules if name in after])
        print([name for name in ("libcuda", "nvrtc", "nvJitLink", "libcudart") if name in maps])
        print(len(after))
        """
    )
    libraries, mapped, count = process.stdout.splitlines()
    assert libraries == "[]"
    assert mapped == "[]"
    assert int(count) <= 12, process.stdout


def test_options_come_at_first_need():
    process = run_python(
        """
        import sys
        import cuda_core
        assert "cuda_core._options" not in sys.modules
        cuda_core.ProgramOptions
        assert "cuda_core._options" in sys.modules
        assert cuda_core.ProgramOptions is cuda_core.ProgramOptions
        from cuda_core import StreamOptions, typing
        print(typing.ObjectCodeFormatType.PTX)
        """
    )
    assert process.stdout.strip() == "ptx"


def test_using_a_device_opens_no_compiler_and_no_numpy():
    process = run_python(
        """
        import sys
        from cuda_core import Device
        device = Device(0)
        with device.create_stream() as stream:
            device.allocate(64, stream=stream).copy_from(bytes(64), stream=stream)
        maps = open("/proc/self/maps").read()
        print("numpy" in sys.modules, "nvrtc" in maps, "cuda.pathfinder" in sys.modules)
        """
    )
    assert process.stdout.split() == ["False", "False", "False"]


def test_public_names():
    import cuda_core

    for name in cuda_core.__all__:
        assert getattr(cuda_core, name) is not None
    assert set(cuda_core.__all__) <= set(dir(cuda_core))
    parts = cuda_core.__version__.split(".")
    assert tuple(map(int, parts[:2])) >= (1, 0)
    with pytest.raises(AttributeError, match="does_not_exist"):
        _ = cuda_core.does_not_exist


def test_two_interpreters():
    """The extension keeps no state in globals: a second interpreter has its own."""
    process = run_python(
        """
        import sys
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import cuda_core
        code = "import cuda_core\\nwith cuda_core.Device(0).create_stream(): print('inside', flush=True)"
        for _ in range(2):
            each = interpreters.create()
            error = interpreters.run_string(each, code)
            assert error is None, error
            interpreters.destroy(each)
        print(cuda_core.Device(0).device_id)
        """
    )
    assert process.stdout.split() == ["inside", "inside", "0"], process.stderr


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_import_leaves_the_gil_off():
    source = "import cuda_core, sys; print(sys._is_gil_enabled())"
    assert run_python(source, env={"PYTHON_GIL": ""}).stdout == "False\n"
