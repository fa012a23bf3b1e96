"""Leaving the interpreter: with everything alive, with work in flight, in any order, quietly, with the right code."""

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
    for (int i = 0; i < rounds; i++) *q = *q + 1;
}
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
    "finalised by gc": "gc.disable(); l = [buffer]; l.append(l); del buffer, l",
}


@pytest.mark.parametrize("name", CASES)
def test_exit(name):
    process = run_python(PRELUDE + CASES[name] + "\n", timeout=60)
    assert process.stderr == ""
    assert process.stdout == ("late\n" if name == "atexit" else "")


def test_exit_code_and_exception_are_kept():
    busy = PRELUDE + "launch(stream, one, kernel, buffer, 100000)\n"
    process = run_python(busy + "raise SystemExit(7)", code=7, timeout=60)
    assert process.stderr == ""
    process = run_python(busy + "raise LookupError('mine')", code=1, timeout=60)
    assert process.stderr.strip().endswith("LookupError: mine")


def test_interrupt_while_waiting():
    """Ctrl-C is seen once the wait is over; the process is not torn."""
    run_python(
        PRELUDE
        + """
import signal
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
launch(stream, one, kernel, buffer, 300000)
signal.setitimer(signal.ITIMER_REAL, 0.01)
try:
    stream.sync()
    import time
    time.sleep(5)
except KeyboardInterrupt:
    pass
stream.sync()
""",
        timeout=60,
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_fork(when):
    """A child that was forked before the driver was opened is free to open it; one forked after can leave."""
    process = run_python(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from cuda_core import Device
        when = sys.argv[1]
        if when == "after":
            device = Device(0)
            stream = device.create_stream()
            stream.sync()
        child = os.fork()
        if child == 0:
            if when == "before":
                with Device(0).create_stream() as mine:
                    mine.sync()
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
        with Device(0).create_stream() as mine:
            mine.sync()
        """,
        when,
        timeout=60,
    )
    assert process.stdout.strip() == "0"
    assert process.stderr == ""


def test_multiprocessing_spawn(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(
        """
import multiprocessing, warnings
warnings.simplefilter("ignore")

def work(i):
    from cuda_core import Device
    device = Device(0)
    with device.create_stream() as stream:
        buffer = device.allocate(4, stream=stream)
        buffer.fill(i, stream=stream)
        result = bytearray(4)
        buffer.copy_to(result, stream=stream)
    return result[0]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, range(4)))
"""
    )
    process = run_python("import runpy, sys\nrunpy.run_path(sys.argv[1], run_name='__main__')", script, timeout=100)
    assert process.stdout.strip() == "[0, 1, 2, 3]"


def test_killed_is_killed():
    process = run_python(PRELUDE + "import signal\nos.kill(os.getpid(), signal.SIGTERM)\nstream.sync()", code=None)
    assert process.returncode == -signal.SIGTERM
