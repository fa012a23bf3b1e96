"""Each interpreter has its own module state, and what core hands back reaches the interpreter that it came from."""

import sys

import pytest
from support import run_python

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"

WORK = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import Device
device = Device(0)
stream = device.create_stream()
class Foreign:
    def __cuda_stream__(self):
        return (0, stream.handle)
for turn in range(100):
    buffer, host = device.allocate(64, stream=Foreign()), bytearray(64)
    buffer.fill(turn, stream=stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert host == bytes([turn]) * 64
    buffer.close()
"""

# run(interpreter, text) raises what fails there; before 3.13 run_string does so itself.
PROLOGUE = f"""
import {MODULE} as interpreters
WORK = {WORK!r}
def run(interpreter, text):
    failure = interpreters.run_string(interpreter, text)
    if failure is not None:
        raise RuntimeError(failure)
"""

# "isolated": a GIL of its own, from 3.12 on; "legacy": it shares the process's.
KINDS = ["legacy"] if sys.version_info < (3, 12) else ["legacy", "isolated"]


def create(kind):
    """The expression that creates an interpreter of that kind."""
    if sys.version_info >= (3, 13):
        return f"interpreters.create({kind!r})"
    return f"interpreters.create(isolated={kind == 'isolated'})"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="one GIL for all interpreters before Python 3.12")
def test_several_at_the_same_time():
    process = run_python(
        PROLOGUE
        + """
import threading
failures = []
def work():
    each = interpreters.create()
    try:
        run(each, WORK)
    except Exception as error:
        failures.append(error)
    interpreters.destroy(each)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
exec(WORK)
print("failures", failures)
"""
    )
    assert process.stdout.split("\n")[0] == "failures []"


@pytest.mark.parametrize("main_first", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_one_after_the_other(kind, main_first):
    """The driver is opened once; interpreters come and go beside objects of the main one, which go on."""
    process = run_python(
        PROLOGUE
        + f"""
if {main_first}:
    exec(WORK)
for _ in range(3):
    each = {create(kind)}
    run(each, WORK)
    interpreters.destroy(each)
exec(WORK)
print("done")
"""
    )
    assert process.stdout.split("\n")[0] == "done"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_ends_in_any_order(kind, order):
    """Each interpreter leaves its objects, and copies that are under way, to its end."""
    process = run_python(
        PROLOGUE
        + f"""
LEAVE = WORK + '''
kept = [device.allocate(1 << 16, stream=Foreign()) for _ in range(4)]
for each in kept:
    each.copy_from(bytes(1 << 16), stream=Foreign())
'''
all = [{create(kind)} for _ in range(3)]
for each in all:
    run(each, LEAVE)
for number in {order}:
    interpreters.destroy(all[number])
    exec(WORK)
print("done")
"""
    )
    assert process.stdout.split("\n")[0] == "done"
