"""fork: a child of a process that has used CUDA is told so by every call, and harms neither itself nor its parent."""

import pytest
from support import run_python

PRELUDE = """
import gc, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
from cuda_core import *

def in_child(work):
    child = os.fork()
    if child == 0:
        work()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

OBJECTS = """
device = Device(0)
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
other = device.allocate(64, stream=stream)
pinned = LegacyPinnedMemoryResource().allocate(64)
pool = DeviceMemoryResource(device, {"max_size": 1 << 22})
pooled = pool.allocate(64, stream=stream)
host = bytearray(64)
event = stream.record(options={"timing_enabled": True})
program = Program('extern "C" __global__ void one(int *p) { *p = 1; }', "c++")
code = program.compile("cubin")
kernel = code.get_kernel("one")
config = LaunchConfig(grid=1, block=1)

def use():
    launch(stream, config, kernel, buffer)
    result = bytearray(64)
    buffer.copy_to(result, stream=stream)
    stream.sync()
    assert result[0] == 1
"""

CALLS = {
    "sync": "stream.sync()",
    "device sync": "device.sync()",
    "set current": "device.set_current()",
    "create stream": "device.create_stream()",
    "create event": "device.create_event()",
    "record": "stream.record(event)",
    "wait": "stream.wait(event)",
    "event sync": "event.sync()",
    "event done": "event.is_done",
    "elapsed": "event - event",
    "launch": "launch(stream, config, kernel, buffer)",
    "allocate": "device.allocate(8, stream=stream)",
    "allocate pinned": "LegacyPinnedMemoryResource().allocate(8)",
    "make pool": "DeviceMemoryResource(device, {'max_size': 1 << 20})",
    "copy": "buffer.copy_to(other, stream=stream)",
    "copy to host": "buffer.copy_to(host, stream=stream)",
    "copy from host": "buffer.copy_from(host, stream=stream)",
    "fill": "buffer.fill(0, stream=stream)",
    "load": "program.compile('cubin', name_expressions=()).get_kernel('one')",
    "attribute": "kernel.attributes.local_size_bytes(0)",
    "occupancy": "kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0)",
    "with": "with device: pass",
    "in a thread": "raise_from_thread(lambda: stream.sync())",
}


def test_every_call_after_use_names_fork():
    """One child does them all, so that none leaves anything behind that would hold the next one up."""
    process = run_python(
        PRELUDE
        + OBJECTS
        + f"""
calls = {CALLS!r}

def raise_from_thread(call):
    caught = []
    def run():
        try:
            call()
        except CUDAError as error:
            caught.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise caught[0]

def child():
    for name, call in calls.items():
        try:
            exec(call)
            print(name, "passed")
        except CUDAError as error:
            text = str(error)
            ok = "fork()" in text and '"spawn"' in text and error.name == "CUDA_ERROR_NOT_INITIALIZED"
            print(name, "told" if ok else text)
    for each in (buffer, pinned, pooled, pool, stream, event):
        each.close()
    assert repr(device) == "<Device 0>" and repr(stream).startswith("<")
    for name in "device stream buffer other pinned pool pooled event program code kernel config each".split():
        globals().pop(name, None)
    gc.collect()
    print("left", flush=True)

use()
assert in_child(child) == 0
use()
""",
        timeout=60,
    )
    lines = process.stdout.splitlines()
    assert lines[: len(CALLS)] == [f"{name} told" for name in CALLS]
    assert lines[-1] == "left"
    assert process.stderr == ""


def test_child_uses_cuda_when_the_parent_has_not():
    child = f"def child():\n    exec({OBJECTS!r} + 'use()', globals())\nprint(in_child(child))\n"
    process = run_python(PRELUDE + child + OBJECTS + "use()")
    assert process.stdout.strip() == "0"
    assert process.stderr == ""


def test_fork_with_work_in_flight_and_threads_in_calls():
    """Locks that another thread held at the fork must not hold the child up."""
    process = run_python(
        PRELUDE
        + OBJECTS
        + """
stop = False
def work():
    with device.create_stream() as mine:
        while not stop:
            launch(mine, config, kernel, other)
            device.allocate(32, stream=mine).close()
            other.copy_to(bytearray(64), stream=mine)
            code.get_kernel("one").attributes.num_regs(0)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()

def child():
    for call in (stream.sync, use, device.create_stream, lambda: code.get_kernel("one").attributes.num_regs(0)):
        try:
            call()
        except CUDAError as error:
            assert "spawn" in str(error)
    gc.collect()

print([in_child(child) for _ in range(20)] == [0] * 20)
stop = True
for thread in threads:
    thread.join()
use()
""",
        timeout=100,
    )
    assert process.stdout.strip() == "True"


def test_fork_of_a_fork():
    process = run_python(
        PRELUDE
        + OBJECTS
        + """
def grandchild():
    try:
        stream.sync()
    except CUDAError as error:
        assert "spawn" in str(error)
    else:
        sys.exit(9)
print(in_child(lambda: sys.exit(in_child(grandchild))))
"""
    )
    assert process.stdout.strip() == "0"


@pytest.mark.parametrize("start", ["subprocess.run([sys.executable, '-c', script], check=True)", "posix_spawn()"])
def test_new_programs_are_no_forks(start):
    process = run_python(
        PRELUDE
        + OBJECTS
        + f"""
import subprocess
script = '''
import warnings
warnings.simplefilter("ignore")
from cuda_core import Device
Device(0).create_stream().sync()
print("works")
'''
def posix_spawn():
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", script], os.environ)
    assert os.waitpid(child, 0)[1] == 0
{start}
use()
"""
    )
    assert process.stdout.strip() == "works"


WORKER = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")

SOURCE = 'extern "C" __global__ void add(int *p, int n) { *p += n; }'

def work(arguments):
    from cuda_core import LaunchConfig, launch
    device, code, config, number = arguments
    with device.create_stream() as stream:
        buffer = device.allocate(4, stream=stream)
        buffer.copy_from(int(100).to_bytes(4, "little"), stream=stream)
        launch(stream, config, code.get_kernel("add"), buffer, number)
        result = bytearray(4)
        buffer.copy_to(result, stream=stream)
    return int.from_bytes(result, "little")

def unpicklable():
    from cuda_core import Device, LegacyPinnedMemoryResource
    device = Device(0)
    stream = device.create_stream()
    buffer = device.allocate(4, stream=stream)
    return [stream, stream.record(), buffer, LegacyPinnedMemoryResource().allocate(4)]

if __name__ == "__main__":
    from cuda_core import Device, LaunchConfig, Program
    method, kind = sys.argv[1:]
    context = multiprocessing.get_context(method)
    code = Program(SOURCE, "c++").compile("cubin")
    given = [(Device(0), code, LaunchConfig(grid=1, block=1), i) for i in range(6)]
    work(given[0])  # the parent uses CUDA, too
    if kind == "Pool":
        with context.Pool(2) as pool:
            print(pool.map(work, given))
            for each in unpicklable():
                try:
                    pool.apply(print, (each,))
                except TypeError as error:
                    print("TypeError", type(each).__name__ in str(error))
    else:
        import concurrent.futures
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            print(list(pool.map(work, given)))
"""


@pytest.mark.parametrize("kind", ["Pool", "Executor"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing(method, kind, tmp_path):
    script = tmp_path / "work.py"
    script.write_text(WORKER)
    run = "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    process = run_python(run, script, method, kind, timeout=100)
    lines = process.stdout.splitlines()
    assert lines[0] == "[100, 101, 102, 103, 104, 105]"
    assert lines[1:] == (["TypeError True"] * 4 if kind == "Pool" else [])
    assert process.stderr == ""
