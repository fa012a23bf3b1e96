"""Faults of kernels, each in a fresh process: a GPU's context is lost with the first. The emulator accounts for it."""

import re

from support import run_python

PRELUDE = """
import sys, warnings
warnings.simplefilter("ignore")
from cuda_core import *
device = Device(0)
stream = device.create_stream()
code = Program(SOURCE, "c++", {"lineinfo": True, "name": "faults.cu"}).compile("cubin")
buffer = device.allocate(64, stream=stream)
buffer.fill(0, stream=stream)
stream.sync()
print("address", hex(int(buffer.handle)))
try:
    launch(stream, LaunchConfig(grid=GRID, block=BLOCK), code.get_kernel("bad"), *ARGUMENTS)
    print("launched")
    stream.sync()
except CUDAError as error:
    print("caught", error.code, error.name)
    print(error)
else:
    print("no error")
"""


class Fault:
    def __init__(self, source, arguments="(buffer,)", grid=1, block=1, more="", env=None):
        text = f"SOURCE = {source!r}\nGRID, BLOCK = {grid}, {block}\n"
        process = run_python(text + PRELUDE.replace("*ARGUMENTS", f"*{arguments}") + more, env=env)
        self.output = process.stdout
        self.stderr = process.stderr
        self.address = int(re.search(r"address (0x[0-9a-f]+)", self.output)[1], 16)
        match = re.search(r"^caught (-?\d+) (\w+)$", self.output, re.MULTILINE)
        assert match, self.output + self.stderr
        self.code, self.name = int(match[1]), match[2]
        self.account = self.output[match.end() :]
        self.launched = "launched" in self.output

    def numbers(self):
        return {int(each, 0) for each in re.findall(r"0x[0-9a-f]+|\b\d+\b", self.account)}


BEYOND = """// line 1
extern "C" __global__ void bad(int *p)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = i;
}
"""


def test_out_of_bounds(emulated):
    # On a GPU a few bytes past the end are somebody's: go far.
    fault = Fault(BEYOND.replace("p[i]", "p[i * 1000000000LL]"), grid=3, block=8)
    assert fault.launched
    assert (fault.code, fault.name) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in fault.account


def test_account_of_an_access_just_past_the_end(emulated):
    if not emulated:  # nothing a GPU would notice
        return
    fault = Fault(BEYOND, grid=3, block=8)
    assert fault.code == 700
    assert fault.launched
    account = fault.account
    assert f"{fault.address + 64:x}" in account.lower()  # the address: thread 16 is the first beyond
    assert "bad" in account  # the kernel
    assert re.search(r"block\W*\(?2\b", account)
    assert re.search(r"thread\W*\(?0\b", account)
    assert "64" in account  # the allocation's size
    assert re.search(r"faults\.cu\W+(line )?5\b", account), account  # the CUDA source line
    assert re.search(r"(?i)write|store", account)
    assert re.search(r"(?i)past|after|beyond|end", account)


def test_account_without_line_information_still_names_the_rest(emulated):
    if not emulated:
        return
    process = run_python(
        f"SOURCE = {BEYOND!r}\nGRID, BLOCK = 3, 8\n"
        + PRELUDE.replace("*ARGUMENTS", "*(buffer,)").replace('"lineinfo": True', '"lineinfo": None')
    )
    assert "caught 700" in process.stdout
    assert re.search(r"block\W*\(?2\b", process.stdout)


def test_read_before_the_start(emulated):
    process = run_python(
        f"""
SOURCE = 'extern "C" __global__ void bad(int *p) {{ *p = 1; }}'
GRID, BLOCK = 1, 1
{
            PRELUDE.replace(
                "try:",
                "address = int(buffer.handle); buffer.close(); stream.sync(); device.sync()" + chr(10) + "try:",
                1,
            ).replace("*ARGUMENTS", "address")
        }
"""
    )
    assert "caught 700" in process.stdout, process.stdout
    assert re.search(r"(?i)free", process.stdout.split("caught")[1])


def test_misaligned(emulated):
    fault = Fault('extern "C" __global__ void bad(char *p)\n{\n    *(int *)(p + 2) = 1;\n}\n')
    assert (fault.code, fault.name) == (716, "CUDA_ERROR_MISALIGNED_ADDRESS")
    if emulated:
        assert f"{fault.address + 2:x}" in fault.account.lower()
        assert re.search(r"(?i)align", fault.account)


def test_shared_memory_out_of_bounds(emulated):
    process = run_python(
        "import ctypes\nHOST = ctypes.create_string_buffer(64)\n"
        "SOURCE = 'extern \"C\" __global__ void bad(int *p) { *p = 1; }'\nGRID, BLOCK = 1, 1\n"
        + PRELUDE.replace("*ARGUMENTS", "ctypes.addressof(HOST) // 16 * 16")
    )
    assert "caught 700" in process.stdout


def test_deadlock_is_reported(emulated):
    """Threads that wait for a barrier the others never reach hang a GPU: only the emulator can tell."""
    if not emulated:
        return
    fault = Fault(
        """
extern "C" __global__ void bad(int *p)
{
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.sync 2, 64;");
    *p = 1;
}
""",
        block=64,
    )
    assert fault.code in (702, 719)
    assert re.search(r"(?i)deadlock|barrier|wait", fault.account)


def test_opcode_that_the_emulator_lacks_is_refused_at_launch(emulated):
    if not emulated:
        return
    ptx = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 p)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    frobnicate.b32 %r1, 5;
    ret;
}
.visible .entry good(.param .u64 p)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""
    process = run_python(
        f"""
import warnings
warnings.simplefilter("ignore")
from cuda_core import *
device = Device(0)
stream = device.create_stream()
buffer = device.allocate(4, stream=stream)
try:
    code = ObjectCode.from_ptx({ptx.encode()!r})
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("bad"), buffer)
except CUDAError as error:
    print("refused", "frobnicate" in str(error), "10" in str(error))
launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("good"), buffer)
data = bytearray(4)
buffer.copy_to(data, stream=stream)
stream.sync()
print(data[0])
"""
    )
    assert process.stdout.split() == ["refused", "True", "True", "7"]
