"""Every driver call fails once, every allocation fails once: `make check-faults`, and in part in test_fault_sweep.py.

The parent opens no driver: it forks a child for each fault (the emulator refuses a child of a process that has begun to
use it). A child lets one thing fail while a scenario runs, looks at how that ended, at what is left alive in the
emulator, and runs the scenario again, which must then work. fault_rules.py says what is right."""

import argparse
import collections
import contextlib
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

import fault_planted as planted
import fault_rules as rules
import fault_scenarios as scenarios
from cuda_core import CUDAError, Device

LOST = (rules.STICKY, rules.LAUNCH_FAILED)

# ---- in a child --------------------------------------------------------------------------------------------------


def without_frames(error):
    """Nothing of the run that raised it is kept alive."""
    if error.__traceback__ is not None:
        traceback.clear_frames(error.__traceback__)
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def run(scenario):
    """The errors that it ends with: the one raised, and those that had no caller to go to."""
    told = []
    sys.unraisablehook = lambda ignored: told.append(without_frames(ignored.exc_value))
    try:
        scenario.run()
    except BaseException as error:
        told.append(without_frames(error))
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    return told


def settled():
    """What is alive once all work is done."""
    scenarios.let_go()
    with contextlib.suppress(CUDAError):
        if rules.current_context() is not None or rules.live()["contexts"]:
            Device(0).sync()
    return rules.live()


def surplus(found, may_leave, lost, what):
    found["contexts"] = max(0, found["contexts"] - 1)  # the primary one stays
    if may_leave is None:
        return []
    for kind in may_leave:
        found[kind] = max(0, found[kind] - 1)
    if lost:
        found["device"] = found["host"] = found["managed"] = 0  # memory of a context that is lost cannot be freed
    left = " ".join(f"{kind}={count}" for kind, count in found.items() if count)
    return [f"{what}: {left} left alive"] if left else []


def is_lost():
    try:
        if rules.live()["contexts"]:
            Device(0).sync()
    except CUDAError as error:
        return error.code in LOST
    return False


def open_driver(scenario):
    if scenario.opens:
        Device(0)


def count(scenario):
    """Runs it without a fault; what there was to fail."""
    open_driver(scenario)
    rules.set_plan("count")
    told = run(scenario)
    rules.set_plan(None)
    found = rules.fault_counts()
    calls = [(rules.call_name(number), rules.call_place(number)) for number in range(1, found["calls"] + 1)]
    complaints = surplus(settled(), (), False, "without a fault")
    complaints += [f"without a fault: {rules.describe(error)}" for error in told]
    return {"complaints": complaints, "calls": calls, "emulator": found["allocations"]}


def count_allocations(scenario):
    open_driver(scenario)
    fault = rules.CoreAllocationFault(0)
    fault.begin()
    scenario.run()
    return {"complaints": [], "core": rules.preloaded.end_library_allocations()}


def count_python_allocations(scenario):
    open_driver(scenario)
    rules.preloaded.fail_python_allocation(0)
    run(scenario)
    return {"complaints": [], "python": rules.preloaded.end_python_allocations()}


def first_run(scenario, fault):
    """With the fault: whether it happened, and the complaints."""
    before = rules.current_context()
    fault.begin()
    try:
        told = run(scenario)
    except MemoryError as outside:
        told = [without_frames(outside)]
    injected = bool(fault.end())
    complaints = [fault.judge(told, scenario.run.__name__)] if injected else []
    sets_it = "Context" in scenario.uses
    if rules.current_context() != before and fault.how != "onwards" and not sets_it:
        complaints.append("the thread's own context was not given back")
    return injected, complaints


def second_run(scenario, fault, lost):
    """Without a fault, as if there had been none; in a lost context it may say that it is lost, and nothing else."""
    told = run(scenario)
    if lost:
        if not fault.may_lose():
            return ["the context was lost"]
        told = [error for error in told if getattr(error, "code", None) not in LOST]
    return [f"the second run{', in a lost context,' if lost else ''} ended in {rules.describe(each)}" for each in told]


def let_fail(scenario, fault):
    open_driver(scenario)
    injected, complaints = first_run(scenario, fault)
    lost = is_lost()
    first = settled()
    complaints += surplus(dict(first), fault.may_leave(), lost, "after the fault")
    complaints += second_run(scenario, fault, lost)
    if not lost:
        second = settled()
        complaints += [
            f"after the second run: {second[kind] - first[kind]} of {kind} more left alive"
            for kind in rules.KINDS
            if kind != "contexts" and second[kind] > first[kind]
        ]
    return {"complaints": [each for each in complaints if each], "injected": injected}


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
    def __init__(self, name, job, seconds=SECONDS):
        self.name, self.seconds, self.deadline = name, seconds, time.monotonic() + seconds
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
        parts, late = [], False
        while select.select([self.report], [], [], max(0, self.deadline - time.monotonic()))[0]:
            part = os.read(self.report, 1 << 20)
            if not part:
                break
            parts.append(part)
        else:
            late = True
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.report)
        os.lseek(self.errors, 0, os.SEEK_SET)
        said = os.read(self.errors, 1 << 16).decode(errors="replace").strip()
        os.close(self.errors)
        answer = json.loads(b"".join(parts)) if parts and not late else {"complaints": []}
        if late:
            answer["complaints"].append(f"no end after {self.seconds} s")
        elif status != 0 or not parts:
            answer["complaints"].append(f"ended by status {status}")
        if said:
            answer["complaints"].append(f"stderr: {said}")
        return self.name, answer


def run_children(jobs, seconds=SECONDS):
    """(name, answer) of each of (name, job), in order; two run at a time."""
    running = collections.deque()
    for name, job in jobs:
        running.append(Running(name, job, seconds))
        if len(running) == PARALLEL:
            yield running.popleft().finish()
    while running:
        yield running.popleft().finish()


COUNTS = (count, count_allocations, count_python_allocations)


def count_faults(name, scenario):
    """What there is to fail, and the complaints of runs without a fault."""
    found, complaints = {}, []
    for _, answer in run_children((name, partial(job, scenario)) for job in COUNTS):
        complaints += answer.pop("complaints")
        found.update(answer)
    return found, complaints


def faults_of(found, kinds):
    """All of one scenario."""
    if "calls" in kinds:
        for number, (name, _) in enumerate(found["calls"], 1):
            for code in rules.CODES:
                yield rules.CallFault(number, code, "")
            yield rules.CallFault(number, rules.PLAIN, "onwards")
            if name in rules.RELEASES:
                yield rules.CallFault(number, rules.PLAIN, "late")
    for kind in (rules.EmulatorAllocationFault, rules.CoreAllocationFault, rules.PythonAllocationFault):
        if kind.kind.lower() in kinds:
            for number in range(1, found[kind.kind.lower()] + 1):
                yield kind(number)


def first_of_each(found, seen):
    """One fault for each call from each place that is not in `seen` yet."""
    for number, call in enumerate(map(tuple, found["calls"]), 1):
        if call not in seen:
            seen.add(call)
            yield rules.CallFault(number, rules.PLAIN, "")


def calls_never_made(seen):
    with open(os.path.join(rules.ROOT, "core", "driver.def")) as file:
        names = set(re.findall(r"^CC_ENTRY\(\w+, (\w+),", file.read(), re.MULTILINE))
    return sorted(names - {name for name, _ in seen} - set(rules.NOT_REACHED))


class Figures:
    def __init__(self):
        self.failures, self.injected = 0, collections.Counter()

    def tell(self, name, complaints):
        self.failures += bool(complaints)
        for each in complaints:
            print(f"FAILED {name}: {each}", flush=True)


def sweep(name, scenario, faults, figures):
    jobs = ((fault, partial(let_fail, scenario, fault)) for fault in faults)
    for fault, answer in run_children(jobs):
        figures.tell(f"{name}, {fault}", answer["complaints"])
        figures.injected[type(fault).__name__] += answer.get("injected", False)


def find_the_planted(figures):
    """The sweep is shown scenarios that are wrong; one that it lets pass is a failure of the sweep's own."""
    for words, scenario in planted.SCENARIOS.items():
        found, _ = count_faults(words, scenario)
        number = [name for name, _ in found["calls"]].index("cuEventCreate") + 1
        job = partial(let_fail, scenario, rules.CallFault(number, rules.PLAIN, ""))
        for _, answer in run_children([(words, job)], seconds=2):
            missed = not any(words in each for each in answer["complaints"])
            figures.tell("the sweep itself", [f"does not find '{words}': {answer['complaints']}"] if missed else [])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1, help="only each STRIDEth fault")
    parser.add_argument("--each-call", action="store_true", help="and one for each driver call from each place in core")
    parser.add_argument("--only", help="scenarios, by commas")
    parser.add_argument("--kinds", default="calls,emulator,core,python", help="of faults, by commas")
    return parser.parse_args()


def main():
    options = arguments()
    if rules.PRELOADED not in os.environ.get("LD_PRELOAD", ""):
        environment = {**os.environ, "LD_PRELOAD": rules.PRELOADED}
        return subprocess.call([sys.executable, *sys.argv], env=environment)

    chosen = options.only.split(",") if options.only else list(scenarios.SCENARIOS)
    kinds, seen, figures = options.kinds.split(","), set(), Figures()
    rules.core_functions()  # before the children, which all want to know
    rules.set_plan("count")
    scenarios.prepare()
    rules.set_plan(None)
    assert rules.fault_counts()["calls"] == 0, "the parent has opened the driver"

    find_the_planted(figures)
    for name in chosen:
        scenario = scenarios.SCENARIOS[name]
        found, complaints = count_faults(name, scenario)
        figures.tell(name, complaints)
        firsts = list(first_of_each(found, seen))
        faults = list(faults_of(found, kinds))[:: options.stride]
        sweep(name, scenario, firsts + faults if options.each_call else faults, figures)
    if not options.only:
        figures.tell("all scenarios", [f"none calls {name}" for name in calls_never_made(seen)])
    for kind, number in figures.injected.items():
        print(f"{kind}: {number}")
    total = sum(figures.injected.values())
    print(f"faults injected {total}, scenarios {len(chosen)}, failures {figures.failures}")
    return figures.failures != 0


if __name__ == "__main__":
    sys.exit(main())
