"""The fault sweep's scenarios use every public class, and a part of it is run; `make check-faults` runs all."""

import os
import subprocess
import sys

from fault_scenarios import public_classes, used_classes
from support import environment


def test_scenarios_use_every_public_class():
    assert used_classes() == public_classes()


def test_a_part_of_the_sweep():
    """Each driver call from each place in core fails once, and one in four hundred of all other faults happens. The
    sweep begins with scenarios that are wrong, and fails where it does not find one of them."""
    sweep = os.path.join(os.path.dirname(__file__), "fault_sweep.py")
    process = subprocess.run(
        [sys.executable, sweep, "--each-call", "--stride=400"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.endswith("failures 0\n")
