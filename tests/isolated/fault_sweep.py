"""Every driver call fails once, every allocation fails once: `make check-faults`, and strided in test_fault_sweep.py.

The parent opens no driver: it forks a child for each fault (the emulator refuses a child of a process that has begun to
use it). A child lets one thing fail while a scenario runs, looks at how that ended, at what is left alive in the
emulator, and runs the scenario again, which must then work."""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from functools import partial

os.environ.setdefault("CUDA_CORE_EMULATOR_WORKERS", "1")
os.environ["CUDA_CORE_DRIVER"] = "emulator"
os.environ.pop("CUDA_CORE_EMULATOR_FAULT", None)

import fault_scenarios as scenarios
from cuda_core import CUDAError, Device, InvalidValueError, NotSupportedError, OutOfMemoryError, _core

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
PRELOADED = os.path.join(ROOT, "build", TAG, "tests", "isolated", "libfailing_allocations.so")

# ---- what is right -----------------------------------------------------------------------------------------------

STICKY = 700
CODES = {
    800: CUDAError,  # CUDA_ERROR_NOT_PERMITTED: one that means nothing in particular
    1: InvalidValueError,
    2: OutOfMemoryError,
    801: NotSupportedError,
    STICKY: CUDAError,
}

# A call that should free something and fails without doing it leaves that alive: nobody can free it then.
RELEASES = {
    "cuStreamDestroy": "streams",
    "cuEventDestroy": "events",
    "cuMemPoolDestroy": "pools",
    "cuLibraryUnload": "libraries",
    "cuMemFree": "device",
    "cuMemFreeAsync": "device",
    "cuMemFreeHost": "host",
}

# Calls whose failure need not fail the job, and why.
BEST_EFFORT = {
    **dict.fromkeys(RELEASES, "what is let go of tells nobody"),
    "cuCtxGetCurrent": "is asked once more when it fails",
    "cuCtxGetId": "a context is then told from others by its address alone",
}

# ---- the emulator and the allocations ----------------------------------------------------------------------------

KINDS = ["contexts", "streams", "events", "pools", "libraries", "modules", "device", "host", "registrations", "managed"]
emulator = ctypes.CDLL(os.path.join(os.path.dirname(_core.__file__), "libcuda_core_emulator.so"))
emulator.cuEmulatorCallName.restype = ctypes.c_char_p
emulator.cuEmulatorCallName.argtypes = (ctypes.c_uint64,)
preloaded = ctypes.PyDLL(PRELOADED)
preloaded.fail_library_allocation.argtypes = (ctypes.c_void_p, ctypes.c_ulong)
preloaded.end_library_allocations.restype = ctypes.c_ulong
preloaded.fail_python_allocation.argtypes = (ctypes.c_ulong,)
preloaded.end_python_allocations.restype = ctypes.c_ulong
core_address = ctypes.cast(ctypes.CDLL(_core.__file__).PyInit__core, ctypes.c_void_p)


def live():
    counts = (ctypes.c_uint64 * len(KINDS))()
    assert emulator.cuEmulatorLiveObjects(counts, ctypes.c_size_t(ctypes.sizeof(counts))) == 0
    return dict(zip(KINDS, counts, strict=True))


def set_plan(text):
    assert emulator.cuEmulatorSetFaultPlan(None if text is None else text.encode()) == 0


def fault_counts():
    counts = (ctypes.c_uint64 * 4)()
    assert emulator.cuEmulatorFaultCounts(counts, ctypes.c_size_t(ctypes.sizeof(counts))) == 0
    return dict(zip(("calls", "allocations", "failed_calls", "failed_allocations"), counts, strict=True))


def call_name(number):
    """Without the version: as cuda_core names it."""
    name = emulator.cuEmulatorCallName(number)
    return None if name is None else re.sub(r"(_v\d)?(_pt[sd][sz])?$", "", name.decode())


# ---- faults ------------------------------------------------------------------------------------------------------


class CallFault(collections.namedtuple("CallFault", "number code late")):
    def begin(self):
        set_plan(f"call={self.number},code={self.code}" + (",late" if self.late else ""))

    def end(self):
        set_plan(None)
        self.name = call_name(self.number)
        return fault_counts()["failed_calls"]

    def allowance(self):
        return RELEASES.get(self.name) if not self.late else None

    def judge(self, error):
        if error is None:
            return None if self.name in BEST_EFFORT else f"{self.name} failed and nobody was told"
        if type(error) is CODES[self.code] and error.code == self.code and error.function == self.name:
            return None
        if self.code == STICKY and type(error) is CUDAError and error.code == STICKY:
            return None  # of a later call in the context that is lost
        return f"{self.name} failed by {self.code}, which was told as {describe(error)}"

    def __str__(self):
        return f"call {self.number}, code {self.code}{', late' if self.late else ''}"


class AllocationFault:
    def __init__(self, number):
        self.number = number

    def allowance(self):
        return None

    def judge(self, error):
        if error is None or isinstance(error, MemoryError):
            return None
        return f"told as {describe(error)}"

    def __str__(self):
        return f"{self.kind} allocation {self.number}"


class PythonAllocationFault(AllocationFault):
    kind = "Python"

    def begin(self):
        self.missed = False
        try:
            preloaded.fail_python_allocation(self.number)
        except MemoryError:  # the call's own
            self.missed = True

    def end(self):
        try:
            count = preloaded.end_python_allocations()
        except MemoryError:
            self.missed = True
            count = preloaded.end_python_allocations()
        return not self.missed and count >= self.number


class CoreAllocationFault(AllocationFault):
    kind = "core"

    def begin(self):
        preloaded.fail_library_allocation(core_address, self.number)

    def end(self):
        return preloaded.end_library_allocations() >= self.number


class EmulatorAllocationFault(AllocationFault):
    kind = "emulator"

    def begin(self):
        set_plan(f"allocation={self.number}")

    def end(self):
        set_plan(None)
        return fault_counts()["failed_allocations"]


def describe(error):
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"{text} [code {getattr(error, 'code', None)}, function {getattr(error, 'function', None)}]"


# ---- in a child --------------------------------------------------------------------------------------------------


def run(scenario):
    """The error that it ends with, or None; nothing of the run is kept."""
    try:
        scenario.run()
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        error.__context__ = None
        return error.with_traceback(None)
    return None


def settled():
    scenarios.let_go()
    with contextlib.suppress(CUDAError):
        Device(0).sync()
    return live()


def surplus(found, allowed, what):
    found["contexts"] = max(0, found["contexts"] - 1)  # the primary one stays
    if allowed is not None and found[allowed] > 0:
        found[allowed] -= 1
    left = " ".join(f"{kind}={count}" for kind, count in found.items() if count)
    return [f"{what}: {left} left alive"] if left else []


def is_lost():
    try:
        Device(0).sync()
    except CUDAError as error:
        return error.code == STICKY
    return False


def open_driver(scenario):
    if scenario.opens:
        Device(0)


def count(scenario):
    """Runs it without a fault four times in one child; what there was to fail."""
    open_driver(scenario)
    set_plan("count")
    error = run(scenario)
    set_plan(None)
    found = fault_counts()
    names = [call_name(number) for number in range(1, found["calls"] + 1)]
    complaints = surplus(settled(), None, "without a fault")
    if error is not None:
        complaints.append(f"without a fault: {describe(error)}")
    return {"complaints": complaints, "names": names, "emulator": found["allocations"]}


def count_allocations(scenario):
    open_driver(scenario)
    fault = CoreAllocationFault(0)
    fault.begin()
    scenario.run()
    return {"complaints": [], "core": preloaded.end_library_allocations()}


def count_python_allocations(scenario):
    open_driver(scenario)
    preloaded.fail_python_allocation(0)
    run(scenario)
    return {"complaints": [], "python": preloaded.end_python_allocations()}


def let_fail(scenario, fault):
    open_driver(scenario)
    fault.begin()
    try:
        error = run(scenario)
    except MemoryError as outside:
        error = outside.with_traceback(None)
    injected = fault.end()
    complaints = [fault.judge(error)] if injected else []
    error = None
    first = settled()
    complaints += surplus(dict(first), fault.allowance(), "after the fault")
    lost = is_lost()
    error = run(scenario)
    if lost:
        if not (isinstance(error, CUDAError) and error.code == STICKY) and not isinstance(fault, CallFault):
            complaints.append("the context was lost")
        elif error is not None and getattr(error, "code", None) != STICKY:
            complaints.append(f"the second run, in a lost context, ended in {describe(error)}")
    elif error is not None:
        complaints.append(f"the second run ended in {describe(error)}")
    error = None
    if not lost:
        second = settled()
        complaints += [
            f"after the second run: {second[kind] - first[kind]} of {kind} more left alive"
            for kind in KINDS
            if kind != "contexts" and second[kind] > first[kind]
        ]
    return {"complaints": [each for each in complaints if each], "injected": bool(injected)}


def child(report, errors, job):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(errors, 2)
    try:
        answer = job()
    except BaseException:
        answer = {"complaints": [traceback.format_exc()]}
    os.write(report, json.dumps(answer).encode())
    os._exit(0)


# ---- in the parent -----------------------------------------------------------------------------------------------

PARALLEL, SECONDS = 2, 60


class Running:
    def __init__(self, name, job):
        self.name, self.deadline = name, time.monotonic() + SECONDS
        self.errors = os.memfd_create("stderr")
        self.report, theirs = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.report)
            child(theirs, self.errors, job)
        os.close(theirs)

    def finish(self):
        """What it said."""
        parts = []
        while select.select([self.report], [], [], max(0, self.deadline - time.monotonic()))[0]:
            part = os.read(self.report, 1 << 20)
            if not part:
                break
            parts.append(part)
        else:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.report)
        os.lseek(self.errors, 0, os.SEEK_SET)
        said = os.read(self.errors, 1 << 16).decode(errors="replace").strip()
        os.close(self.errors)
        answer = json.loads(b"".join(parts)) if parts else {"complaints": []}
        if status == signal.SIGKILL and time.monotonic() >= self.deadline:
            answer["complaints"].append(f"no end after {SECONDS} s")
        elif status != 0 or not parts:
            answer["complaints"].append(f"ended by status {status}")
        if said:
            answer["complaints"].append(f"stderr: {said}")
        return self.name, answer


def run_children(jobs):
    """(name, answer) of each of (name, job), in order; two run at a time."""
    running = collections.deque()
    for name, job in jobs:
        running.append(Running(name, job))
        if len(running) == PARALLEL:
            yield running.popleft().finish()
    while running:
        yield running.popleft().finish()


def faults_of(found, kinds):
    names = found["names"]
    if "calls" in kinds:
        for number, name in enumerate(names, 1):
            for code in CODES:
                yield CallFault(number, code, False)
            if name in RELEASES:
                yield CallFault(number, 800, True)
    for kind in (EmulatorAllocationFault, CoreAllocationFault, PythonAllocationFault):
        if kind.kind.lower() in kinds:
            for number in range(1, found[kind.kind.lower()] + 1):
                yield kind(number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1, help="only each STRIDEth fault")
    parser.add_argument("--only", help="scenarios, by commas")
    parser.add_argument("--kinds", default="calls,emulator,core,python")
    options = parser.parse_args()
    if PRELOADED not in os.environ.get("LD_PRELOAD", ""):
        environment = {**os.environ, "LD_PRELOAD": PRELOADED}
        return subprocess.call([sys.executable, *sys.argv], env=environment)

    chosen = options.only.split(",") if options.only else list(scenarios.SCENARIOS)
    kinds = options.kinds.split(",")
    set_plan("count")
    scenarios.prepare()
    set_plan(None)
    assert fault_counts()["calls"] == 0, "the parent has opened the driver"
    failures, injected = 0, collections.Counter()

    def tell(name, complaints):
        nonlocal failures
        failures += bool(complaints)
        for each in complaints:
            print(f"FAILED {name}: {each}", flush=True)

    for name in chosen:
        scenario = scenarios.SCENARIOS[name]
        found = {}
        for _, answer in run_children((name, partial(job, scenario)) for job in COUNTS):
            tell(name, answer.pop("complaints"))
            found.update(answer)
        faults = list(faults_of(found, kinds))[:: options.stride]
        jobs = ((fault, partial(let_fail, scenario, fault)) for fault in faults)
        for fault, answer in run_children(jobs):
            tell(f"{name}, {fault}", answer["complaints"])
            injected[type(fault).__name__] += answer.get("injected", False)
    for kind, number in injected.items():
        print(f"{kind}: {number}")
    print(f"faults injected {sum(injected.values())}, scenarios {len(chosen)}, failures {failures}")
    return failures != 0


COUNTS = (count, count_allocations, count_python_allocations)

if __name__ == "__main__":
    sys.exit(main())
