"""The README's Python is run as printed."""

import os
import re

import pytest
from support import ROOT, run_python

with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
    BLOCKS = re.findall(r"^```python\n(.*?)^```", readme.read(), re.DOTALL | re.MULTILINE)


def test_there_is_an_example():
    assert BLOCKS
    assert "launch(" in BLOCKS[0]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number):
    pytest.importorskip("numpy")
    process = run_python(BLOCKS[number], flags=("-W", "ignore"))
    assert process.stderr == ""
    if number == 0:
        assert "elements are right" in process.stdout
