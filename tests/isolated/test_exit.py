"""Leaving the interpreter: with everything alive, with work in flight, in any order, quietly, with the right code."""

import importlib.util
import re
import signal

import pytest
from support import run_python

PRELUDE = """
import atexit, gc, os, sys, threading, warnings
warnings.simplefilter("ignore")
from cuda_core import *
device = Device(0)
stream = device.create_stream()
code = Program('''
extern "C" __global__ void slow(int *p, int rounds)
{
    volatile int *q = p;
    for (int i = 0; i != rounds; i++) *q = *q + 1;
}
extern "C" __global__ void bad(int *p) { *(int *)16 = 1; }
''', "c++").compile("cubin")
kernel = code.get_kernel("slow")
one = LaunchConfig(grid=1, block=1)
buffer = device.allocate(64, stream=stream)
"""

CASES = {
    "everything alive": "",
    "work in flight": "launch(stream, one, kernel, buffer, 300000)",
    "copies in flight": (
        "host = bytearray(64); launch(stream, one, kernel, buffer, 300000); buffer.copy_to(host, stream=stream)"
    ),
    "many streams": (
        "keep = [device.create_stream() for _ in range(50)]; [launch(s, one, kernel, buffer, 10) for s in keep]"
    ),
    "events in flight": (
        "launch(stream, one, kernel, buffer, 300000); event = stream.record(options={'timing_enabled': True})"
    ),
    "cycle": "class Node: pass\nnode = Node(); node.self = node; node.all = [device, stream, code, kernel, buffer]",
    "globals in a bad order": "import builtins\nbuiltins.keep = (buffer, stream); del stream, buffer",
    "module attribute": "import cuda_core; cuda_core.keep = [buffer, stream, kernel]",
    "atexit": "atexit.register(lambda: (launch(stream, one, kernel, buffer, 10), stream.sync(), print('late')))",
    "daemon thread": (
        "def work():\n    while True:\n        launch(stream, one, kernel, buffer, 10); stream.sync()\n"
        "threading.Thread(target=work, daemon=True).start()"
    ),
    "finaliser": "class Last:\n    def __del__(self): buffer.close(); stream.close()\nlast = Last()",
    "exception": "raise SystemExit(0)",
    "open with block": (
        "def generator():\n    with device.create_stream() as s:\n        yield s\nkeep = generator(); next(keep)"
    ),
    "exported memory": "pinned = LegacyPinnedMemoryResource().allocate(64); view = memoryview(pinned)",
    "dlpack capsule": "capsule = buffer.__dlpack__(stream=-1)",
    "python resource": (
        "class Mine(MemoryResource):\n"
        "    is_device_accessible, is_host_accessible, device_id = True, False, 0\n"
        "    def allocate(self, size, *, stream): return Buffer.from_handle(int(buffer.handle), size, mr=self)\n"
        "    def deallocate(self, ptr, size, *, stream): pass\n"
        "mine = Mine().allocate(16, stream=stream)"
    ),
    "a kernel that never ends": "launch(stream, one, kernel, buffer, -1)",
    "a kernel that never ends, and memory whose release waits": (
        "launch(stream, one, kernel, buffer, -1); pinned = LegacyPinnedMemoryResource().allocate(64); "
        "buffer.copy_from(memoryview(pinned), stream=stream)"
    ),
    "poisoned": "launch(stream, one, code.get_kernel('bad'), buffer)\ntry: stream.sync()\nexcept CUDAError: pass",
    "poisoned, not known yet": "launch(stream, one, code.get_kernel('bad'), buffer)",
    "poisoned, objects in a cycle": (
        "launch(stream, one, code.get_kernel('bad'), buffer)\n"
        "class Node: pass\nnode = Node(); node.all = [node, stream, stream.record(), code, kernel, buffer]"
    ),
    "exit in a thread": (
        "thread = threading.Thread(target=lambda: (launch(stream, one, kernel, buffer, 3000), sys.exit(3)))\n"
        "thread.start()"
    ),
    "last use in a thread": (
        "def work():\n    import time; time.sleep(0.2); launch(stream, one, kernel, buffer, 300000)\n"
        "    global late; late = [device.create_stream(), device.allocate(64, stream=stream)]\n"
        "threading.Thread(target=work).start()"
    ),
    "daemon thread that waits": (
        "launch(stream, one, kernel, buffer, -1)\nthreading.Thread(target=stream.sync, daemon=True).start()\n"
        "import time; time.sleep(0.1)"
    ),
    "a thread of the system that outlives Python": """
import ctypes
libc = ctypes.CDLL(None)
device.set_current()
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def body(_):
    device.set_current()
    stream.sync()
    libc.usleep(300000)
    return 0
handle = ctypes.c_ulong()
libc.pthread_create(ctypes.byref(handle), None, body, None)
import time; time.sleep(0.1)
""",
    "weak reference callbacks": (
        "import weakref\nkeep = [weakref.ref(x, lambda _: stream.is_closed) for x in (buffer, kernel, code)]\n"
        "weakref.finalize(buffer, stream.sync)"
    ),
    "os._exit": "launch(stream, one, kernel, buffer, -1); os._exit(0)",
    "finalised by gc": "gc.disable(); l = [buffer]; l.append(l); del buffer, l",
}


@pytest.mark.parametrize("name", CASES)
def test_exit(name):
    process = run_python(PRELUDE + CASES[name] + "\n", timeout=60)
    assert process.stderr == ""
    assert process.stdout == ("late\n" if name == "atexit" else "")


WAITING_CALLS = {"cuLibraryUnload", "cuMemFree", "cuMemFreeHost", "cuCtxSynchronize", "cuStreamSynchronize"}


def test_exit_makes_no_call_that_waits(emulated):
    """A GPU's driver does not tell code away, nor memory of no stream, before the kernels that run are done."""
    if not emulated:
        pytest.skip("only the emulated device shows the calls")
    process = run_python(
        PRELUDE
        + "keep = [code, kernel, LegacyPinnedMemoryResource().allocate(64)]\n"
        + "other = Program('extern \"C\" __global__ void k() {}', 'c++').compile('cubin').get_kernel('k'); del other\n"
        + "launch(stream, one, kernel, buffer, -1)\n"
        + "print('exit', file=sys.stderr, flush=True)",
        env={"CUDA_CORE_EMULATOR_TRACE": "stderr"},
        timeout=60,
    )
    before, after = (set(re.findall(r"\bcu\w+(?=\()", part)) for part in process.stderr.split("exit\n", maxsplit=1))
    assert "cuLibraryUnload" in before
    assert {"cuMemFreeAsync", "cuStreamDestroy"} <= {name.removesuffix("_v2") for name in after}
    assert not WAITING_CALLS & {name.removesuffix("_v2") for name in after}


def test_exit_code_and_exception_are_kept():
    busy = PRELUDE + "launch(stream, one, kernel, buffer, 100000)\n"
    process = run_python(busy + "raise SystemExit(7)", code=7, timeout=60)
    assert process.stderr == ""
    process = run_python(busy + "raise LookupError('mine')", code=1, timeout=60)
    assert process.stderr.strip().endswith("LookupError: mine")


def test_killed_is_killed():
    process = run_python(PRELUDE + "import signal\nos.kill(os.getpid(), signal.SIGTERM)\nstream.sync()", code=None)
    assert process.returncode == -signal.SIGTERM


OTHERS = {
    "torch": "import torch\nother = torch.ones(16, device={device!r})\nhook = lambda: print(int(other.sum()))\n",
    "cupy": "import cupy\nother = cupy.ones(16)\nhook = lambda: print(int(other.sum()))\n",
}
WITHOUT_A_GPU = {
    "torch": OTHERS["torch"].format(device="cpu"),
    "cupy": "import cupy\nother = cupy.RawKernel('', 'k')\nhook = lambda: print(len(other.name) * 16)\n",
}


@pytest.mark.parametrize("order", ["ours first", "theirs first"])
@pytest.mark.parametrize("name", OTHERS)
def test_exit_beside_another_library(name, order, emulated):
    """Its atexit handlers and ours, and each library's objects used in the other's time."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    ours = PRELUDE + "mine = lambda: (launch(stream, one, kernel, buffer, 10), stream.sync(), print('ours'))\n"
    theirs = WITHOUT_A_GPU[name] if emulated else OTHERS[name].format(device="cuda")
    process = run_python(
        (ours + theirs if order == "ours first" else theirs + ours)
        + "import atexit\natexit.register(hook)\natexit.register(mine)\n"
        + "launch(stream, one, kernel, buffer, 300000)\nkeep = [other, buffer, stream, kernel]\n",
        timeout=120,
    )
    assert process.stdout.split() == ["ours", "16"]
    assert process.stderr == ""
