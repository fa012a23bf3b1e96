"""The fault sweep's scenarios: they use every public class, and without a fault each works and leaves nothing alive."""

import os
import subprocess
import sys

from fault_scenarios import public_classes, used_classes
from support import environment


def test_scenarios_use_every_public_class():
    assert used_classes() == public_classes()


def test_scenarios_work_without_a_fault():
    sweep = os.path.join(os.path.dirname(__file__), "fault_sweep.py")
    process = subprocess.run(
        [sys.executable, sweep, "--kinds="], capture_output=True, text=True, timeout=120, env=environment()
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.endswith("failures 0\n")
