"""The emulator's plan of faults: what is asked to fail does, with the code asked for, and nothing else."""

import pytest
from support import run_python

CREATE = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import CUDAError, Device
device = Device(0)
try:
    device.create_stream()
except CUDAError as error:
    print(error.code, error.function)
device.create_stream()
print("works")
"""


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        ("call=cuStreamCreateWithPriority,nth=1", 999),
        ("call=cuStreamCreateWithPriority,nth=1,code=2", 2),
        ("call=cuStreamCreateWithPriority,nth=1,code=CUDA_ERROR_NOT_PERMITTED,late", 800),
    ],
)
def test_call_of_a_name(plan, code):
    process = run_python(CREATE, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": plan})
    assert process.stdout.splitlines() == [f"{code} cuStreamCreateWithPriority", "works"]


QUESTIONS = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import CUDAError, Device
with Device(0).create_stream() as stream:
    event = stream.record()
    stream.sync()
    for asked in (stream, event):
        try:
            asked.is_done
        except CUDAError as error:
            print(error.code, error.function)
    print(stream.is_done, event.is_done)
"""


def test_a_question_that_fails_is_no_answer():
    """The sweep cannot tell these from the same calls before a wait, which need not be told."""
    plan = "call=cuStreamQuery,nth=2;call=cuEventQuery,nth=1"
    process = run_python(QUESTIONS, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": plan})
    assert process.stdout.splitlines() == ["999 cuStreamQuery", "999 cuEventQuery", "True True"]


FIRST_USE = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import CUDAError, Device
try:
    Device(0)
except CUDAError as error:
    print(error.code, error.function)
Device(0).sync()
print("works")
"""


@pytest.mark.parametrize(
    "function",
    [
        "cuInit",
        "cuGetProcAddress",
        "cuDriverGetVersion",
        "cuDeviceGetCount",
        "cuDeviceGet",
    ],
)
def test_a_failure_at_first_use_decides_nothing(function):
    plan = f"call={function},nth=1,code=CUDA_ERROR_NOT_PERMITTED"
    process = run_python(FIRST_USE, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": plan})
    assert process.stdout.splitlines() == [f"800 {function}", "works"]


def test_the_code_of_a_lost_context_at_first_use():
    """There is no context yet to ask for the launch that failed."""
    plan = "call=cuGetProcAddress,nth=20,code=CUDA_ERROR_ILLEGAL_ADDRESS"
    process = run_python(FIRST_USE, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": plan})
    assert process.stdout.splitlines() == ["700 cuGetProcAddress", "works"]


def test_count_lets_nothing_fail():
    process = run_python(CREATE, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": "count"})
    assert process.stdout.splitlines() == ["works"]


@pytest.mark.parametrize("plan", ["nonsense", "call=cuNoSuchCall", "allocation=0", "call=1,code=12345", "call=1;"])
def test_a_plan_that_is_none_names_the_variable_and_the_grammar(plan):
    process = run_python(CREATE, env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": plan}, code=1)
    assert f"CUDA_CORE_EMULATOR_FAULT={plan}: a plan is rules joined by" in process.stderr
