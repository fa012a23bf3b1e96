"""Each scenario of threads.py for a moment; `make check-threads` gives them longer."""

import pytest
from threads import SCENARIOS, run_process


@pytest.mark.parametrize("name", [scenario.__name__ for scenario in SCENARIOS])
def test_shared_by_threads(name):
    operations, failures, said = run_process(name, 0.5)
    assert failures == 0, said
    assert operations > 0
