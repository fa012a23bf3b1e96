"""Waiting hears signals: Ctrl-C within 100 ms, with all objects as usable as before."""

import json

import pytest
from support import run_python

PRELUDE = """
import json, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
from cuda_core import *
device = Device(0)
stream = device.create_stream()
kernel = Program('''
extern "C" __global__ void wait(volatile int *flag, int *out) { while (*flag == 0); *out = 7; }
''', "c++").compile("cubin").get_kernel("wait")
pinned = LegacyPinnedMemoryResource().allocate(64)
words = memoryview(pinned).cast("B").cast("i")
one = LaunchConfig(grid=1, block=1)
device_memory = device.allocate(1 << 22, stream=stream)

def start(stream):
    words[0] = words[1] = 0
    launch(stream, one, kernel, int(pinned.handle), int(pinned.handle) + 4)

def later(seconds, action):
    def run():
        time.sleep(seconds)
        action()
    thread = threading.Thread(target=run)
    thread.start()
    return thread
"""

WAITS = {
    "stream": "stream.sync()",
    "event": "event.sync()",
    "device": "device.sync()",
    "with": "with mine: start(mine)",
    "copy to the host": "device_memory.copy_to(bytearray(1 << 22), stream=stream)",
    "copy from the host": "device_memory.copy_from(bytes(1 << 22), stream=stream)",
    "pinned": "LegacyPinnedMemoryResource().deallocate(0, 0, stream=stream)",
}


@pytest.mark.parametrize("wait", WAITS)
def test_interrupt(wait):
    """Of five interrupts the median comes through in 100 ms: a busy machine may hold the process up now and then."""
    process = run_python(
        PRELUDE
        + f"""
delays = []
for _ in range(5):
    mine = device.create_stream()
    start(stream)
    event = stream.record()
    sent = []
    thread = later(0.2, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)))
    try:
        {WAITS[wait]}
        print("the wait was not broken off")
    except KeyboardInterrupt:
        delays.append(time.monotonic() - sent[0])
    thread.join()
    assert not event.is_done
    words[0] = 1
    stream.sync()
    assert event.is_done and words[1] == 7
    start(stream)  # as usable as before
    words[0] = 1
    stream.sync()
    assert words[1] == 7
    device.sync()
print(json.dumps(delays))
""",
        timeout=60,
    )
    assert process.stderr == ""
    delays = json.loads(process.stdout)
    assert len(delays) == 5
    assert sorted(delays)[2] < 0.1


def test_handler_that_returns():
    """It runs while the wait goes on."""
    process = run_python(
        PRELUDE
        + """
hits = []
signal.signal(signal.SIGALRM, lambda *_: (hits.append(time.monotonic()), len(hits) == 5 and words.__setitem__(0, 1)))
start(stream)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
stream.sync()  # ends only because the handler was run five times meanwhile
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(hits) >= 5, words[1])
""",
        timeout=60,
    )
    assert process.stdout.split() == ["True", "7"]


def test_handler_that_closes_what_is_waited_for():
    process = run_python(
        PRELUDE
        + """
signal.signal(signal.SIGUSR1, lambda *_: (stream.close(), words.__setitem__(0, 1)))
start(stream)
thread = later(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
stream.sync()
thread.join()
print(stream.is_closed, words[1])
""",
        timeout=60,
    )
    assert process.stdout.split() == ["True", "7"]


def test_exception_of_a_handler():
    process = run_python(
        PRELUDE
        + """
def handler(*_):
    raise LookupError("mine")
signal.signal(signal.SIGUSR1, handler)
start(stream)
thread = later(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
try:
    stream.sync()
except LookupError as error:
    print(error)
words[0] = 1
stream.sync()
""",
        timeout=60,
    )
    assert process.stdout == "mine\n"


def test_other_threads_wait_on():
    """A signal is the main thread's: it gets the exception, and the thread that waits its result."""
    process = run_python(
        PRELUDE
        + """
start(stream)
done = []
waiter = threading.Thread(target=lambda: (stream.sync(), done.append(words[1])))
waiter.start()
later(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted", done)
words[0] = 1
waiter.join()
print(done)
""",
        timeout=60,
    )
    assert process.stdout == "interrupted []\n[7]\n"


def test_interrupt_then_exit():
    """As a user who gives up on a kernel that never ends."""
    process = run_python(
        PRELUDE
        + """
start(stream)
later(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
stream.sync()
""",
        code=None,
        timeout=60,
    )
    assert process.returncode in (130, -2)
    assert process.stderr.rstrip().endswith("KeyboardInterrupt")


WAITS_OF_DEVICE_0 = {
    "stream": "stream.sync()",
    "event": "event.sync()",
    "device": "device.sync()",
    "copy": "buffer.copy_to(bytearray(64), stream=stream)",
}


@pytest.mark.parametrize("wait", WAITS_OF_DEVICE_0)
def test_device_that_a_handler_sets_stays_set(wait, emulated):
    """A wait may have to make its own device current, but not while a handler runs, whose choice it would undo."""
    if not emulated:
        pytest.skip("needs three devices")
    process = run_python(
        PRELUDE
        + f"""
buffer = device.allocate(64, stream=stream)
start(stream)
event = stream.record()
Device(1).set_current()

def handler(*_):
    print(Device().device_id)
    Device(2).set_current()
    words[0] = 1

signal.signal(signal.SIGUSR1, handler)
thread = later(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
{WAITS_OF_DEVICE_0[wait]}
thread.join()
print(Device().device_id)
""",
        env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_DEVICES": 3},
        timeout=60,
    )
    assert process.stdout.split() == ["1", "2"]
