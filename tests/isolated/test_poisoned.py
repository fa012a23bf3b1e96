"""A context that a kernel has poisoned: every later error says which launch failed first. Each in a fresh process."""

import pytest
from support import figures, run_python

PRELUDE = """
import warnings
warnings.simplefilter("ignore")
from cuda_core import *
SOURCE = '''
extern "C" __global__ void good(int *p) { *p = 1; }
extern "C" __global__ void bad(int *p) { *p = 1; }
extern "C" __global__ void trap(int *p) { asm("trap;"); }
'''
device = Device(0)
stream, other = device.create_stream(), device.create_stream()
code = Program(SOURCE, "c++", {"std": "c++17"}).compile("cubin")
good, bad, trap = map(code.get_kernel, ("good", "bad", "trap"))
buffer = device.allocate(64, stream=stream)
stream.sync()
once = LaunchConfig(grid=1, block=1)
def told(call):
    try:
        call()
    except CUDAError as error:
        print(error.code, next((line for line in str(error).splitlines() if "irst failed" in line), str(error)))
    else:
        print("no error")
def where(stream):
    return f"on stream {int(stream.handle):#x}"
print(where(stream), where(other), sep="\\n")
"""


def run(body):
    """The streams' handles as errors show them, and the lines that the body printed."""
    process = run_python(PRELUDE + body)
    assert process.stderr == ""
    stream, other, *lines = process.stdout.splitlines()
    figures["calls"] += len(lines)
    return stream, other, lines


@pytest.mark.parametrize(("kernel", "code"), [("bad", 700), ("trap", 719)])
def test_every_later_call_names_the_launch(kernel, code):
    stream, _, lines = run(
        f"""
launch(stream, once, {kernel}, None)
for call in (
    stream.sync, stream.sync, device.sync, stream.record, other.sync, device.create_stream, device.create_event,
    lambda: launch(other, once, good, buffer), lambda: buffer.fill(0, stream=other),
    lambda: device.allocate(64, stream=stream), lambda: buffer.copy_to(bytearray(64), stream=stream),
    lambda: LegacyPinnedMemoryResource().allocate(64),
):
    told(call)
"""
    )
    assert len(lines) == 12
    for line in lines:
        assert line.startswith(f"{code} "), line
        assert f"First failed: kernel {kernel} {stream} (the only launch in flight)." in line


def test_launches_that_were_waited_for_are_out_of_it():
    """By each way of waiting: the stream, an event, the device, a question that was answered with yes."""
    stream, _, lines = run(
        """
launch(stream, once, good, buffer)
stream.sync()
launch(other, once, good, buffer)
other.record().sync()
launch(LEGACY_DEFAULT_STREAM, once, good, buffer)
device.sync()
launch(other, once, good, buffer)
event = other.record()
while not event.is_done:
    pass
launch(stream, once, bad, None)
told(stream.sync)
"""
    )
    assert f"First failed: kernel bad {stream} (the only launch in flight)." in lines[0]


def test_several_in_flight_are_told_as_several():
    stream, other, lines = run(
        """
launch(stream, once, good, buffer)
launch(other, once, good, buffer)
launch(stream, once, bad, None)
told(device.sync)
told(other.sync)
"""
    )
    for line in lines:
        assert "First failed, of the launches in flight, one of: " in line
        assert line.count("kernel good") == 2
        assert f"kernel good {stream}" in line
        assert f"kernel good {other}" in line
        assert f"kernel bad {stream}" in line
    assert lines[0] == lines[1].replace("cuStreamSynchronize", "cuCtxSynchronize").replace(
        " An earlier kernel failed: this process cannot use the device any more, start a new one.", ""
    )


def test_many_in_flight_are_counted():
    _, _, lines = run(
        """
for _ in range(100):
    launch(stream, once, good, buffer)
launch(stream, once, bad, None)
told(stream.sync)
"""
    )
    assert lines[0].count("kernel good") + lines[0].count("kernel bad") == 8
    assert "; and 93 more." in lines[0]


def test_kernels_that_are_gone_are_still_named():
    stream, _, lines = run(
        """
launch(stream, once, bad, None)
del good, bad, trap, code
import gc; gc.collect()
told(stream.sync)
"""
    )
    assert f"kernel bad {stream}" in lines[0]


def test_a_launch_that_was_refused_is_no_suspect():
    stream, _, lines = run(
        """
try:
    launch(stream, LaunchConfig(grid=1, block=1, shmem_size=10**7), good, buffer)
except ValueError:
    pass
launch(stream, once, bad, None)
told(stream.sync)
"""
    )
    assert f"First failed: kernel bad {stream} (the only launch in flight)." in lines[0]


def test_other_work_than_launches(emulated):
    """A fill that reaches past its memory, which a GPU's driver refuses at once."""
    if not emulated:
        return
    process = run_python(
        PRELUDE + "told(device.sync)",
        env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_FAULT": "call=cuCtxSynchronize,code=700"},
    )
    figures["calls"] += 1
    assert "700 CUDA_ERROR_ILLEGAL_ADDRESS in cuCtxSynchronize" in process.stdout
    assert "No launch of this library was in flight: other work failed" in process.stdout


def test_the_device_that_did_not_fail_works_on():
    process = run_python(
        PRELUDE
        + """
launch(stream, once, bad, None)
told(stream.sync)
second = Device(1)
with second.create_stream() as there:
    memory = second.allocate(64, stream=there)
    launch(there, once, good, memory)
memory.close()
print("works")
told(stream.sync)
""",
        env={"CUDA_CORE_DRIVER": "emulator", "CUDA_CORE_EMULATOR_DEVICES": "2"},
    )
    stream, _, first, works, again = process.stdout.splitlines()
    figures["calls"] += 2
    assert works == "works"
    for line in (first, again):
        assert f"First failed: kernel bad {stream} (the only launch in flight)." in line


@pytest.mark.parametrize("variable", [None, "1"])
def test_tracing_names_the_line(variable):
    body = """
def run():
    launch(stream, once, bad, None)
if trace_launches() is not ON:
    raise SystemExit("wrong")
run()
told(stream.sync)
told(other.sync)
"""
    process = run_python(f"ON = {variable is not None}\n{PRELUDE}{body}", env={"CUDA_CORE_TRACE_LAUNCHES": variable})
    stream, _, *lines = process.stdout.splitlines()
    line = f"ON\n{PRELUDE}{body}"[: f"ON\n{PRELUDE}{body}".index("launch(stream, once")].count("\n") + 1
    figures["calls"] += 2
    assert len(lines) == 2
    for each in lines:
        assert f"First failed: kernel bad (<string>:{line}) {stream} (the only launch in flight)." in each


def test_tracing_that_is_off_names_no_line():
    stream, _, lines = run(
        """
trace_launches()
if trace_launches(False) is not True:
    raise SystemExit("wrong")
launch(stream, once, bad, None)
told(stream.sync)
"""
    )
    assert f"First failed: kernel bad {stream} (the only" in lines[0]
