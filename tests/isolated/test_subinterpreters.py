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


@pytest.mark.skipif(sys.version_info < (3, 12), reason="one GIL for all interpreters before Python 3.12")
def test_several_at_the_same_time():
    process = run_python(
        f"""
        import threading
        import {MODULE} as interpreters
        WORK = {WORK!r}
        failures = []
        def work():
            each = interpreters.create()
            failure = interpreters.run_string(each, WORK)
            if failure is not None:
                failures.append(failure)
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
