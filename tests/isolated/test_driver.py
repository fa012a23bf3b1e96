"""Which driver is opened: what CUDA_CORE_DRIVER says, what is broken, and what is missing. Never a silent fallback."""

import os
import re
import shutil
import subprocess
import sysconfig

import pytest
from support import run_python

OPEN = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import CUDAError, Device
try:
    device = Device(0)
except Exception as error:
    print("error", type(error).__name__, isinstance(error, (CUDAError, ImportError, OSError, RuntimeError)))
    print(error)
    try:  # and the same again
        Device(0)
    except Exception as again:
        print("again", type(again).__name__)
else:
    print("opened", device.is_emulated)
"""


def opened(driver, **more):
    return run_python(OPEN, env={"CUDA_CORE_DRIVER": driver, **more}).stdout


def build(tmp_path, name, source):
    """A shared library of C source, made with the compiler that the package was built with."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    compiler = shutil.which(compiler) or shutil.which("cc")
    (tmp_path / "source.c").write_text(source)
    library = tmp_path / name
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "source.c")]
    subprocess.run(command, check=True, capture_output=True)
    return library


def test_emulator():
    assert opened("emulator").split() == ["opened", "True"]


EMULATOR_PATH = """
import re, warnings
warnings.simplefilter("ignore")
from cuda_core import Device
Device(0)
print(re.search(r"(/\\S*cuda_core_emulator\\S*\\.so)", open("/proc/self/maps").read())[1])
"""


def test_emulator_by_its_path():
    path = run_python(EMULATOR_PATH, env={"CUDA_CORE_DRIVER": "emulator"}).stdout.strip()
    assert opened(path).split() == ["opened", "True"]


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        *((f"DEVICES={value}", "0 to 64") for value in ("x", "-1", "65", "1.5")),
        ("DEVICES=0", "1 to 64"),
        *((f"MEMORY={value}", "1048576 to 1099511627776") for value in ("x", "1", "-5", "4T")),
        *((f"COMPUTE_CAPABILITY={value}", "9.0, 10.0") for value in ("x", "9.9", "90")),
        *((f"WORKERS={value}", "1 to 4096") for value in ("x", "0", "-1", "4097", "2k")),
        *((f"SEED={value}", "0 to 18446744073709551615") for value in ("x", "-1", "99999999999999999999")),
    ],
)
def test_emulator_setting_that_is_nothing(setting, allowed):
    """It is refused with its name and what is allowed, not ignored."""
    name, value = setting.split("=")
    output = opened("emulator", **{f"CUDA_CORE_EMULATOR_{name}": value})
    assert output.startswith("error"), output
    assert f"CUDA_CORE_EMULATOR_{setting}:" in output
    assert allowed in output


@pytest.mark.parametrize("setting", ["DEVICES=64", "MEMORY=1m", "WORKERS=1", "SEED=18446744073709551615", "SEED="])
def test_emulator_setting(setting):
    name, value = setting.split("=")
    assert opened("emulator", **{f"CUDA_CORE_EMULATOR_{name}": value}).split() == ["opened", "True"]


def test_native(emulated):
    output = opened("native")
    if emulated:
        assert output.startswith("error")
        assert "libcuda" in output
        assert "again" in output
    else:
        assert output.split() == ["opened", "False"]


@pytest.mark.parametrize("value", ["/nonexistent/libcuda.so.1", "nativ", "EMULATOR2", "/", "/dev/null"])
def test_choice_that_is_nothing(value):
    output = opened(value)
    assert output.startswith("error"), output
    assert value in output
    assert "again" in output


def test_empty_choice_is_no_choice(emulated):
    assert opened("").split() == ["opened", str(emulated)]


INIT = "int cuInit(unsigned flags) { (void)flags; return %d; }\n"
PROC = """
#include <string.h>
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *status)
{
    (void)version; (void)flags;
    *function = strcmp(name, "cuInit") == 0 ? (void *)cuInit : (void *)0;
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
"""


@pytest.mark.parametrize("code", [100, 999, 803, 34])
@pytest.mark.parametrize("has_proc_address", [False, True])
def test_broken_driver(tmp_path, code, has_proc_address):
    """A driver that is there and says no: an error that names it, and no emulated device instead."""
    library = build(tmp_path, "libcuda.so.1", INIT % code + (PROC if has_proc_address else ""))
    output = opened(library)
    assert output.startswith("error"), output
    assert str(library) in output
    assert "again" in output


def test_broken_driver_names_the_code(tmp_path):
    library = build(tmp_path, "libcuda.so.1", INIT % 804 + PROC)
    output = opened(library)
    assert re.search(r"804|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", output), output


def test_broken_driver_where_the_loader_finds_it(tmp_path, emulated):
    """The machine's own libcuda is broken: no fallback to the emulator, although there is no device either."""
    build(tmp_path, "libcuda.so.1", INIT % 999 + PROC)
    output = run_python(OPEN, env={"CUDA_CORE_DRIVER": None, "LD_LIBRARY_PATH": str(tmp_path)}).stdout
    assert output.startswith("error"), output


def stub_libraries():
    places = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    found = (os.path.join(place, "lib64/stubs/libcuda.so") for place in places if place)
    return [path for path in found if os.path.exists(path)]


def test_stub_library():
    """The toolkit's stub links programs and can run none: it is said so."""
    stubs = stub_libraries()
    if not stubs:
        pytest.skip("no toolkit with stubs/libcuda.so")
    output = opened(stubs[0])
    assert output.startswith("error"), output
    assert "stub" in output.lower(), output


def test_library_that_is_no_driver(tmp_path):
    library = build(tmp_path, "libcuda.so.1", "int something_else(void) { return 1; }\n")
    output = opened(library)
    assert output.startswith("error")
    assert str(library) in output


def test_missing_compiler():
    """Without NVRTC everything else works, and compiling says what to install."""
    process = run_python(
        """
        import sys, warnings
        warnings.simplefilter("ignore")
        import cuda_core._find as find
        find.nvrtc_path = lambda: "/nonexistent/libnvrtc.so.13"
        from cuda_core import Device, Program
        device = Device(0)
        with device.create_stream() as stream:
            device.allocate(16, stream=stream).fill(0, stream=stream)
        try:
            Program('extern "C" __global__ void k() {}', "c++").compile("ptx")
        except Exception as error:
            print(type(error).__name__, isinstance(error, ImportError), isinstance(error, RuntimeError))
            print(error)
        """
    )
    first, *rest = process.stdout.splitlines()
    assert first.split()[1:] == ["True", "True"], process.stdout
    text = "\n".join(rest)
    assert "NVRTC" in text
    assert "pip install" in text
    assert "cu13" in text or "nvidia-cuda-nvrtc" in text


def test_compiler_that_is_no_compiler(tmp_path):
    library = build(tmp_path, "libnvrtc.so.13", "int something_else(void) { return 1; }\n")
    process = run_python(
        """
        import sys, warnings
        warnings.simplefilter("ignore")
        import cuda_core._find as find
        find.nvrtc_path = lambda: sys.argv[1]
        from cuda_core import Program
        try:
            Program('extern "C" __global__ void k() {}', "c++").compile("ptx")
        except Exception as error:
            print(type(error).__name__, error)
        """,
        library,
    )
    assert str(library) in process.stdout


WITHOUT_PARAMETERS = """
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
typedef int get(const char *name, void **function, int version, unsigned long long flags, int *found);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *found)
{
    void *real = dlopen(getenv("TEST_DRIVER"), RTLD_NOW);
    const int status = ((get *)dlsym(real, "cuGetProcAddress_v2"))(name, function, version, flags, found);
    if (status == 0 && strcmp(name, "cuKernelGetParamInfo") == 0) {
        *function = 0;
        if (found) *found = 1;
    }
    return status;
}
int cuInit(unsigned flags)
{
    return ((int (*)(unsigned))dlsym(dlopen(getenv("TEST_DRIVER"), RTLD_NOW), "cuInit"))(flags);
}
int cuDriverGetVersion(int *version)
{
    return ((int (*)(int *))dlsym(dlopen(getenv("TEST_DRIVER"), RTLD_NOW), "cuDriverGetVersion"))(version);
}
"""


def test_arguments_of_a_kernel_that_tells_nothing(tmp_path):
    """A driver before 12.4 does not tell the parameters: sizes are the arguments' own, however large they are."""
    code = """
        import ctypes, re, warnings
        warnings.simplefilter("ignore")
        from cuda_core import Device, Kernel, LaunchConfig, ObjectCode, launch
        class Large(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_char * 2**28)]
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        ptx = ".version 7.8\\n.target sm_80\\n.address_size 64\\n.visible .entry k(.param .u64 a, .param .b32 b)"
        ptx += "{ .reg .b64 p; .reg .b32 v; ld.param.u64 p, [a]; ld.param.b32 v, [b]; st.global.b32 [p], v; ret; }"
        code = ObjectCode.from_ptx(ptx.encode())
        kernel = Kernel.from_handle(int(code.get_kernel("k").handle))
        large, out, result = bytes(2**28), device.allocate(4, stream=stream), bytearray(4)
        launch(stream, LaunchConfig(grid=1, block=1), kernel, out, b"four")
        out.copy_to(result, stream=stream)
        stream.sync()
        print(bytes(result))
        for args in ([large] * 16, [bytes(32765)], [bytes(32764), True], [bytes(2**32 + 4)],
                     [Large()] * 16):
            try:
                launch(stream, LaunchConfig(grid=1, block=1), kernel, *args)
            except ValueError as error:
                print(re.sub("kernel .*?,", "kernel,", str(error)))
    """
    emulator = run_python(EMULATOR_PATH, env={"CUDA_CORE_DRIVER": "emulator"}).stdout.strip()
    library = build(tmp_path, "libcuda.so.1", WITHOUT_PARAMETERS)
    lines = run_python(code, env={"CUDA_CORE_DRIVER": library, "TEST_DRIVER": emulator}).stdout.splitlines()
    says = "with it the arguments take more than the 32764 bytes that a kernel can take"
    assert lines == ["b'four'", *(f"kernel, argument {index}: {says}" for index in (0, 0, 1, 0, 0))]


SLOW = """
#include <unistd.h>
__attribute__((constructor)) static void load(void) { usleep(1000000); }
"""


def test_child_forked_while_the_compiler_is_opened(tmp_path):
    """The lock that the opening thread held does not hold the child up, which may compile whatever its parent did."""
    library = build(tmp_path, "libnvrtc.so.13", SLOW)
    process = run_python(
        """
        import os, signal, sys, threading, time
        import cuda_core._find as find
        find.nvrtc_path = lambda: sys.argv[1]
        from cuda_core import Program

        def compile():
            try:
                Program('extern "C" __global__ void k() {}', "c++").compile("ptx")
            except Exception as error:
                print(sys.argv[1] in str(error), flush=True)

        thread = threading.Thread(target=compile)
        thread.start()
        time.sleep(0.3)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs is not left behind
        compile()
        if child == 0:
            os._exit(0)
        thread.join()
        print(os.waitpid(child, 0)[1])
        """,
        library,
        timeout=30,
    )
    assert process.stdout.split() == ["True"] * 3 + ["0"]
