"""Faults of kernels, each in a fresh process: a GPU's context is lost with the first. The emulator accounts for it."""

import re

import pytest
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
    fault = Fault('extern "C" __global__ void bad(int *p) {\n p[0] = p[-4000000000LL]; }')
    assert fault.code == 700
    if emulated:
        assert re.search(r"(?i)read|load", fault.account)


def test_null_pointer(emulated):
    fault = Fault('extern "C" __global__ void bad(int *p)\n{\n    *p = 1;\n}\n', arguments="(None,)")
    assert fault.code == 700
    if emulated:
        assert re.search(r"(?i)null", fault.account)
        assert re.search(r"faults\.cu\W+(line )?3\b", fault.account)


STORE = "SOURCE = 'extern \"C\" __global__ void bad(int *p) { *p = 1; }'\nGRID, BLOCK = 1, 1\n"


def test_use_after_free(emulated):
    if not emulated:  # a GPU's pool keeps the memory mapped
        return
    freed = "address = int(buffer.handle); buffer.close(); device.sync()\ntry:"
    process = run_python(STORE + PRELUDE.replace("try:", freed, 1).replace("*ARGUMENTS", "address"))
    assert "caught 700" in process.stdout, process.stdout
    assert re.search(r"(?i)free", process.stdout.split("caught")[1])


def test_host_memory_handed_to_a_kernel(emulated):
    if not emulated:  # a GPU that reads pageable memory allows it
        return
    host = "import ctypes\nHOST = ctypes.create_string_buffer(64)\n"
    process = run_python(host + STORE + PRELUDE.replace("*ARGUMENTS", "ctypes.addressof(HOST) // 16 * 16"))
    assert "caught 700" in process.stdout


def test_write_to_constant_memory(emulated):
    if not emulated:  # undefined, and an H200 lets it pass
        return
    fault = Fault(
        """
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void bad(int *p)
{
    int *volatile *slot = (int *volatile *)p; // or the compiler sees through it
    *slot = table;
    **slot = 5;
}
"""
    )
    assert fault.code == 700
    assert "constant" in fault.account


def test_misaligned(emulated):
    fault = Fault('extern "C" __global__ void bad(char *p)\n{\n    *(int *)(p + 2) = 1;\n}\n')
    assert (fault.code, fault.name) == (716, "CUDA_ERROR_MISALIGNED_ADDRESS")
    if emulated:
        assert f"{fault.address + 2:x}" in fault.account.lower()
        assert re.search(r"(?i)align", fault.account)


def test_shared_memory_out_of_bounds(emulated):
    fault = Fault(
        """
extern "C" __global__ void bad(int *p)
{
    extern __shared__ int s[];
    s[threadIdx.x + 1000000] = 1;
    p[0] = s[0];
}
"""
    )
    # What a GPU calls it depends on its generation.
    assert fault.code in ((700,) if emulated else (700, 717, 718, 719))
    if emulated:
        assert "shared" in fault.account


def test_local_array_out_of_bounds(emulated):
    """A local array is at the end of nothing on a GPU, where the stack of the next thread follows."""
    if not emulated:
        return
    fault = Fault(
        """
extern "C" __global__ void bad(int *p)
{
    int a[4];
    for (int i = 0; i < 4; i++) a[i] = p[i];
    a[p[0] + 100000000] = 3;
    p[0] = a[p[1]];
}
"""
    )
    assert fault.code == 700
    assert "local" in fault.account


def test_trap():
    fault = Fault('extern "C" __global__ void bad(int *p)\n{\n    __trap();\n}\n')
    assert (fault.code, fault.name) in ((719, "CUDA_ERROR_LAUNCH_FAILED"), (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"))


def test_failed_assertion():
    fault = Fault(
        """// NVRTC knows assert by itself
extern "C" __global__ void bad(int *p)
{
    assert(threadIdx.x < 3 && "only three");
    p[threadIdx.x] = 1;
}
""",
        block=4,
    )
    assert (fault.code, fault.name) == (710, "CUDA_ERROR_ASSERT")
    both = fault.stderr + fault.output
    assert "only three" in both
    assert re.search(r"block: \[0,\s*0,\s*0\], thread: \[3,\s*0,\s*0\]", both)
    assert re.search(r"faults\.cu:4", both)


def test_account_names_the_function_inside(emulated):
    fault = Fault(
        """
__device__ __noinline__ void store(int *p, long long i)
{
    p[i] = 1;
}
extern "C" __global__ void bad(int *p) { store(p, 4000000000LL * (1 + threadIdx.x)); }
"""
    )
    assert fault.code == 700
    if emulated:
        assert re.search(r"faults\.cu\W+(line )?4\b", fault.account), fault.account


@pytest.mark.parametrize(
    "call",
    [
        "device.sync()",
        "stream.sync()",
        "stream.record().sync()",
        "buffer.copy_to(bytearray(64), stream=stream); stream.sync()",
    ],
)
def test_error_stays(call):
    """After a fault each later use of the context says so again, and leaving the process is quiet."""
    fault = Fault(
        'extern "C" __global__ void bad(int *p) { *p = 1; }',
        arguments="(None,)",
        more=f"""
try:
    {call}
    {call}
except CUDAError as error:
    print("again", error.code)
buffer.close()
stream.close()
del buffer, stream, code
""",
    )
    assert "again 700" in fault.output
    assert fault.stderr == ""


def test_fault_of_a_copy(emulated):
    """A copy past the end of what was allocated is refused or stops the stream; nothing is written."""
    if not emulated:
        return
    process = run_python(
        """
        import warnings
        warnings.simplefilter("ignore")
        from cuda_core import *
        device = Device(0)
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        longer = Buffer.from_handle(int(buffer.handle), 4096, owner=buffer)
        try:
            longer.fill(1, stream=stream)
            stream.sync()
        except CUDAError as error:
            print(error.name)
            print(error)
        """
    )
    assert process.stdout.split()[0] in ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert "64" in process.stdout


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
