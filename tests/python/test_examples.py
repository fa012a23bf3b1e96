"""Each example is run as a learner would run it."""

import os
import subprocess
import sys

import pytest
from support import ROOT, environment

DIRECTORY = os.path.join(ROOT, "examples")
EXAMPLES = sorted(name for name in os.listdir(DIRECTORY) if name.endswith(".py"))


def test_there_are_examples():
    assert {"saxpy.py", "matmul.py", "mandelbrot.py", "histogram.py", "events_timing.py"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path):
    process = subprocess.run(
        [sys.executable, "-W", "ignore", os.path.join(DIRECTORY, name)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        cwd=tmp_path,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stderr == ""
    assert process.stdout.rstrip().splitlines()[-1].startswith("right"), process.stdout
