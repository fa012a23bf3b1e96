"""What the tests share: fresh processes, bytes in and out of a device, and the machine's driver."""

import os
import subprocess
import sys
import textwrap
from collections import Counter

figures: Counter[str] = Counter()
"""What the tests have done, by name: `pytest --figures` shows it."""

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def environment(**changes):
    """This process's environment with changes; a value of None removes a variable."""
    result = dict(os.environ)
    if "PYTHONPATH" in result:  # fresh processes may start in another directory
        parts = result["PYTHONPATH"].split(os.pathsep)
        result["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in parts if part)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def run_python(source, *arguments, env=None, timeout=120, cwd=None, code=0, flags=()):
    """Runs source in a fresh interpreter and returns the finished process, whose exit code must be `code`.

    code None allows any. Text of `source` may be indented."""
    figures["processes"] += 1
    process = subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(source), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env=environment(**(env or {})),
    )
    if code is not None:
        assert process.returncode == code, (
            f"exit code {process.returncode}\n--- stdout\n{process.stdout}\n--- stderr\n{process.stderr}"
        )
    return process


def upload(device, stream, data):
    """A device buffer that holds the bytes of data, a buffer-protocol object."""
    buffer = device.allocate(memoryview(data).nbytes, stream=stream)
    buffer.copy_from(data, stream=stream)
    return buffer


def download(buffer, stream):
    """The bytes of a buffer, once the work queued in stream is done."""
    result = bytearray(buffer.size)
    buffer.copy_to(result, stream=stream)
    stream.sync()
    return bytes(result)


def zeros(device, stream, size):
    buffer = device.allocate(size, stream=stream)
    buffer.fill(0, stream=stream)
    return buffer


def random(seed=1):
    import numpy

    return numpy.random.default_rng(seed)


def units_in_the_last_place(got, exact, dtype="f4"):
    """How far got is from the exact values, in units of the last place of dtype."""
    import numpy as np

    exact = np.asarray(exact, dtype=np.float64)
    return np.max(np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(dtype)).astype(np.float64))
