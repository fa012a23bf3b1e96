"""Objects shared by eight threads: every use gives the right result or ClosedError, and nothing else.

usage: python tests/isolated/threads.py [--seconds SECONDS] [SCENARIO ...]

Runs each scenario for so many seconds in a fresh process, threads changing as often as the interpreter lets them, and
prints what they did, and the seed of what is random in them: --seed runs that again. test_threads.py runs the same for
a moment each."""

import argparse
import gc
import itertools
import os
import random
import struct
import subprocess
import sys
import threading
import time
import traceback
import weakref

import pytest

THREADS = 8

SOURCE = """
extern "C" __global__ void add(int *cell, int n) { atomicAdd(cell, n); }
extern "C" __global__ void add_both(int *cell, int *witness, int n) { atomicAdd(cell, n); atomicAdd(witness, n); }
template <typename T> __global__ void put(T *cell, T value) { *cell = value; }
"""


class Failures(list):
    """What went wrong, each with its traceback."""

    def note(self, error):
        self.append("".join(traceback.format_exception(type(error), error, error.__traceback__)))


class Run:
    """One scenario in this process: how long it goes on, what it did, what failed."""

    def __init__(self, seconds, seed):
        self.deadline = time.monotonic() + seconds
        self.seed = seed
        self.failures = Failures()
        self.operations = 0

    def rounds(self):
        """Numbers, until the time is over or something failed; one at least."""
        for number in itertools.count():
            if number and (time.monotonic() > self.deadline or self.failures):
                return
            yield number

    def together(self, work, count=THREADS):
        """work(i) on `count` threads that begin at the same moment; what it returns is its number of operations."""
        gate, done = threading.Barrier(count), [0] * count

        def begin(i):
            try:
                gate.wait()
                done[i] = work(i)
            except BaseException as error:
                self.failures.note(error)

        threads = [threading.Thread(target=begin, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.operations += sum(done)


class Bench:
    """A device and kernels for it, and short ways to memory."""

    def __init__(self):
        from cuda_core import Device, LaunchConfig, Program

        self.device = Device(0)
        self.one = LaunchConfig(grid=1, block=32)
        self.code = Program(SOURCE, "c++", {"std": "c++17"}).compile("cubin", name_expressions=["put<int>"])
        self.add, self.add_both = self.code.get_kernel("add"), self.code.get_kernel("add_both")

    def zeros(self, stream, size=4):
        buffer = self.device.allocate(size, stream=stream)
        buffer.fill(0, stream=stream)
        return buffer

    def bytes_of(self, buffer, stream):
        host = bytearray(buffer.size)
        buffer.copy_to(host, stream=stream)
        stream.sync()
        return bytes(host)

    def int_of(self, buffer, stream):
        return struct.unpack("<i", self.bytes_of(buffer, stream))[0]


def attempt(call, *arguments, **options):
    """True where the call went well, False where it raised ClosedError; all else is a failure."""
    from cuda_core import ClosedError

    try:
        call(*arguments, **options)
    except ClosedError:
        return False
    return True


# ---- objects that stay open ------------------------------------------------------------------------------------------


def launches_on_one_stream(run):
    from cuda_core import launch

    bench, turns = Bench(), 50
    with bench.device.create_stream() as stream:
        cell, total = bench.zeros(stream), 0

        def work(i):
            for _ in range(turns):
                launch(stream, bench.one, bench.add, cell, i + 1)
            return turns

        for _ in run.rounds():
            run.together(work)
            total += 32 * turns * sum(range(1, THREADS + 1))
            assert bench.int_of(cell, stream) == (total + 2**31) % 2**32 - 2**31


def launches_on_streams_of_their_own(run):
    """The memory is shared, met on more streams than a buffer remembers, and freed while they still work."""
    from cuda_core import launch

    bench = Bench()
    for _ in run.rounds():
        with bench.device.create_stream() as stream:
            cell, witness = bench.zeros(stream), bench.zeros(stream)
            stream.sync()

            def work(i, cell=cell, witness=witness):
                for _ in range(5):
                    own = bench.device.create_stream()
                    launch(own, bench.one, bench.add_both, cell, witness, 1)
                    own.close()
                return 5

            run.together(work)
            cell.close()
            bench.zeros(stream)  # may be the same memory
            bench.device.sync()
            assert bench.int_of(witness, stream) == 32 * 5 * THREADS


def allocations_from_one_resource(run):
    from cuda_core import DeviceMemoryResource

    bench = Bench()
    for _ in run.rounds():
        resource = DeviceMemoryResource(0, {"max_size": 1 << 20})

        def work(i, resource=resource):
            with bench.device.create_stream() as stream:
                for turn in range(10):
                    buffer = resource.allocate(64 + i, stream=stream)
                    buffer.fill(16 * i + turn, stream=stream)
                    part = buffer[i:]
                    buffer.close()
                    assert bench.bytes_of(part, stream) == bytes([16 * i + turn]) * 64
                    part.close(stream)
            return 40

        run.together(work)
        bench.device.sync()
        assert resource.attributes.used_mem_current == 0
        resource.close()


def copies_to_and_from_the_host(run):
    """Host memory is given back by whichever thread waits next."""
    bench = Bench()
    with bench.device.create_stream() as stream:

        def work(i):
            data = bytes([i]) * 4096
            for _ in range(10):
                buffer = bench.device.allocate(4096, stream=stream)
                buffer.copy_from(data, stream=stream)
                assert bench.bytes_of(buffer, stream) == data
            return 30

        for _ in run.rounds():
            run.together(work)


def objects_made_once(run):
    """Each is asked for by all threads at the same time, and is one and the same for all."""
    bench = Bench()
    names = list(bench.device.properties)

    def work(i):
        device = bench.device
        seen.append((device.memory_resource, device.default_stream, device.properties, device.name, device.uuid))
        for name in names[i::4]:
            assert device.properties[name] == getattr(device.properties, name)
        assert device.context == device.context
        return 5 + len(names[i::4])

    for _ in run.rounds():
        seen = []
        run.together(work)
        assert all(len({id(each) for each in column}) == 1 for column in zip(*seen, strict=True))


def current_device(run):
    """Each thread has a current device, and a per-thread default stream, of its own."""
    from cuda_core import PER_THREAD_DEFAULT_STREAM, Device, launch

    bench = Bench()
    context = bench.device.context

    def work(i):
        cell = bench.zeros(PER_THREAD_DEFAULT_STREAM)
        for _ in range(10):
            if i % 2:
                bench.device.set_current()
                assert bench.device.set_current(context) == context
            with bench.device as entered, bench.device:
                assert Device() is entered
                launch(PER_THREAD_DEFAULT_STREAM, bench.one, bench.add, cell, i)
        assert bench.int_of(cell, PER_THREAD_DEFAULT_STREAM) == 10 * 32 * i
        return 60

    for _ in run.rounds():
        run.together(work)


# ---- closes while in use ---------------------------------------------------------------------------------------------


def race(run, count, make, uses):
    """One thread closes what make() gives; the others use it, in any order, through uses(thing): a list of calls."""
    randoms = [random.Random(f"{run.seed} {i}") for i in range(THREADS)]

    for number in run.rounds():
        thing, went_well = make(), [0] * THREADS

        def work(i, thing=thing, went_well=went_well, closer=number % THREADS):
            calls = uses(thing)
            moment = randoms[i].randrange(count)
            for turn in range(count):
                if i == closer and turn == moment:
                    thing.close()
                went_well[i] += attempt(randoms[i].choice(calls))
            return count

        run.together(work)
        assert thing.is_closed
        assert all(not attempt(call) for call in uses(thing))


def buffer_closed(run):
    """A launch or a copy that was accepted gets the memory whole: what it wrote is not in the memory's next use."""
    from cuda_core import ClosedError, launch

    bench = Bench()
    host = bytearray(4)
    for number in run.rounds():
        with bench.device.create_stream() as stream:
            cell, other, witness = bench.zeros(stream), bench.zeros(stream), bench.zeros(stream)
            accepted = [0] * THREADS

            def work(i, stream=stream, cell=cell, other=other, witness=witness, accepted=accepted, number=number):
                uses = [
                    lambda: cell.copy_to(other, stream=stream),
                    lambda: cell.copy_from(other, stream=stream),
                    lambda: cell.copy_from(bytes(4), stream=stream),
                    lambda: cell.copy_to(host, stream=stream),
                    lambda: cell.fill(0, stream=stream),
                    lambda: cell[1:3].fill(0, stream=stream),
                    lambda: cell.__dlpack__(stream=1),
                    lambda: (cell.handle, cell.size, cell.device_id, cell.memory_resource),
                    lambda: cell.set_deallocation_stream(stream),
                ]
                for turn in range(20):
                    if turn == 3 + 2 * number % 13 and i == number % THREADS:
                        cell.close(stream) if number % 2 else cell.close()
                        fresh = bench.zeros(stream)
                        assert bench.int_of(fresh, stream) == 0
                        assert repr(cell).endswith("closed>")
                    try:
                        launch(stream, bench.one, bench.add_both, cell, witness, i)
                        accepted[i] += 1
                    except ClosedError:
                        assert cell.is_closed
                    attempt(uses[(turn + i) % len(uses)])
                return 40

            run.together(work)
            stream.sync()
            assert bench.int_of(witness, stream) == 32 * sum(i * count for i, count in enumerate(accepted))


def stream_closed(run):
    from cuda_core import launch

    bench = Bench()
    with bench.device.create_stream() as steady:
        cell = bench.zeros(steady)
        steady.sync()

        def uses(stream):
            return [
                lambda: launch(stream, bench.one, bench.add, cell, 1),
                lambda: cell.fill(0, stream=stream),
                lambda: bench.device.allocate(16, stream=stream).close(),
                lambda: stream.record().sync(),
                lambda: stream.wait(steady),
                lambda: steady.wait(stream),
                lambda: stream.sync(),
                lambda: stream.is_done,
                lambda: (stream.handle, stream.priority, stream.is_nonblocking),
                lambda: (stream.device, stream.context),
                lambda: stream.__cuda_stream__(),
                lambda: bench.device.create_stream(stream).close(),
            ]

        race(run, 10, bench.device.create_stream, uses)


def stream_closed_that_another_shares(run):
    """A Stream made of a Stream goes on in the middle of its calls, whoever closes the first one."""
    from cuda_core import launch

    bench = Bench()
    for number in run.rounds():
        first = bench.device.create_stream()
        second = bench.device.create_stream(first)
        cell = bench.zeros(second)

        def work(i, first=first, second=second, cell=cell, number=number):
            for turn in range(10):
                if i == number % THREADS and turn == 2:
                    first.close()
                launch(second, bench.one, bench.add, cell, 1)
                second.record().sync()
            return 20

        run.together(work)
        assert first.is_closed
        assert bench.int_of(cell, second) == 32 * 10 * THREADS
        second.close()


def event_closed(run):
    bench = Bench()
    with bench.device.create_stream() as stream:
        first = stream.record(options={"timing_enabled": True})

        def uses(event):
            return [
                lambda: stream.wait(event),
                lambda: event.sync(),
                lambda: event.is_done,
                lambda: (event.handle, event.device, event.context),
                lambda: event - first,
            ]

        def make():
            event = stream.record(options={"timing_enabled": True})
            event.sync()
            return event

        race(run, 10, make, uses)


def resource_closed(run):
    from cuda_core import DeviceMemoryResource, PinnedMemoryResource

    bench = Bench()
    with bench.device.create_stream() as stream:

        def uses(resource):
            return [
                lambda: resource.allocate(32, stream=stream).close(),
                lambda: resource.attributes.used_mem_current,
                lambda: resource.handle,
                lambda: resource.is_handle_owned,
            ]

        kinds = itertools.cycle([lambda: DeviceMemoryResource(0, {"max_size": 1 << 20}), PinnedMemoryResource])
        race(run, 10, lambda: next(kinds)(), uses)


def program_closed(run):
    from cuda_core import Program

    def uses(program):
        return [lambda: program.compile("ptx"), lambda: program.handle]

    race(run, 2, lambda: Program(SOURCE, "c++", {"std": "c++17"}), uses)


# ---- the collector ---------------------------------------------------------------------------------------------------


def garbage(run):
    """Objects in cycles, looked at through weak references, collected by every thread in the middle of the others'."""
    from cuda_core import Buffer, LegacyPinnedMemoryResource, MemoryResource, launch

    class Resource(MemoryResource):
        """Memory of its own, in a cycle with each of its buffers."""

        is_device_accessible = is_host_accessible = True
        device_id = -1

        def __init__(self):
            self.under, self.live, self.given_back = LegacyPinnedMemoryResource(), {}, 0

        def allocate(self, size, *, stream=None):
            memory = self.under.allocate(size)
            self.live[memory.handle] = memory
            return Buffer.from_handle(memory.handle, size, mr=self)

        def deallocate(self, ptr, size, *, stream=None):
            stream.sync()
            self.live.pop(ptr).close()
            self.given_back += 1

    bench = Bench()
    for _ in run.rounds():
        resources, gone, kept = [], [], []

        def work(i, resources=resources, gone=gone, kept=kept):
            resource = Resource()
            references = []
            with bench.device.create_stream() as stream:
                for turn in range(8):
                    buffer = resource.allocate(4, stream=stream)
                    buffer.fill(0, stream=stream)
                    launch(stream, bench.one, bench.add, buffer, turn)
                    assert bench.int_of(buffer, stream) == 32 * turn
                    resource.last = buffer  # buffer -> allocation -> resource -> buffer
                    references.append(weakref.ref(buffer, gone.append))
                    references.append(weakref.ref(stream.record()))
                    if turn % 3 == i % 3:
                        gc.collect()
                    for reference in references:
                        target = reference()
                        assert target is None or not target.is_closed
            resources.append(weakref.ref(resource))
            kept.append(references)
            return 32

        run.together(work)
        gc.collect()
        assert [each() for each in resources] == [None] * THREADS
        assert len(gone) == 8 * THREADS


def collector_all_the_time(run):
    """A thread that only collects, and a collection at every container made.

    Finalizers and callbacks of weak references, which then run in the middle of other calls, use the package."""
    from cuda_core import launch

    bench = Bench()
    steady = bench.device.create_stream()
    noted = {"finalized": 0, "called back": 0}
    lock = threading.Lock()

    def note(what):
        with lock:
            noted[what] += 1

    class Cycle:
        """Garbage that holds a Buffer and a Stream, and works with them when it is collected."""

        def __init__(self):
            self.itself, self.stream = self, bench.device.create_stream()
            self.cell = bench.device.allocate(4, stream=self.stream)

        def __del__(self):
            self.cell.fill(0, stream=self.stream)
            launch(self.stream, bench.one, bench.add, self.cell, 1)
            assert bench.int_of(self.cell, self.stream) == 32
            self.cell.close()
            self.stream.close()
            note("finalized")

    def called_back(_):
        steady.record().close()
        note("called back")

    def work(i):
        if i == 0:
            for _ in range(20):
                gc.collect()
            return 20
        references = []
        for _ in range(5):
            cycle = Cycle()
            references.append(weakref.ref(cycle, called_back))
            cell = bench.zeros(steady)
            launch(steady, {"grid": 1, "block": 32}, bench.add, cell, i)
            assert bench.int_of(cell, steady) == 32 * i
            del cycle
        kept.append(references)
        return 5 * 4

    thresholds, unraisable, made = gc.get_threshold(), [], 0
    sys.unraisablehook = unraisable.append
    gc.set_threshold(1)
    try:
        for _ in run.rounds():
            kept = []
            run.together(work)
            made += 5 * (THREADS - 1)
            gc.collect()
            assert not unraisable, unraisable
            assert noted == {"finalized": made, "called back": made}
    finally:
        gc.set_threshold(*thresholds)
        sys.unraisablehook = sys.__unraisablehook__
    steady.close()


# ---- compiling -------------------------------------------------------------------------------------------------------


def compilations(run):
    from cuda_core import CompileError, LaunchConfig, ObjectCode, Program, launch

    bench = Bench()
    shared = Program(SOURCE, "c++", {"std": "c++17"})
    for _ in run.rounds():
        code = ObjectCode.from_ptx(shared.compile("ptx", name_expressions=["put<int>"]).code)
        kernels = []

        def work(i, code=code, kernels=kernels):
            kernel = code.get_kernel("add")  # all threads load it at the same time
            kernels.append(kernel)
            assert sorted(code)[:2] == ["_Z3putIiEvPT_S0_", "add"]
            assert (kernel.num_arguments, len(kernel.arguments_info)) == (2, 2)
            assert kernel.attributes.max_threads_per_block >= 32
            own = shared if i % 2 else Program(SOURCE, "c++", {"std": "c++17"})
            put = own.compile("cubin", name_expressions=["put<int>"]).get_kernel("put<int>")
            with pytest.raises(CompileError, match="not"):
                Program("not C++", "c++").compile("ptx")
            with bench.device.create_stream() as stream:
                cell = bench.zeros(stream)
                launch(stream, LaunchConfig(grid=1, block=1), put, cell, 1000 + i)
                launch(stream, bench.one, kernel, cell, 1)
                assert bench.int_of(cell, stream) == 1032 + i
            return 7

        run.together(work)
        assert len({each.handle for each in kernels}) == 1


# ---- first use -------------------------------------------------------------------------------------------------------

FIRST_USES = {
    "devices": "cuda_core.Device().name",
    "numbers": "cuda_core.Device(0).compute_capability",
    "streams": "cuda_core.Device(0).create_stream().close()",
    "default": "cuda_core.LEGACY_DEFAULT_STREAM.sync()",
    "memory": "cuda_core.Device(0).allocate(8, stream=cuda_core.LEGACY_DEFAULT_STREAM).close()",
    "options": "cuda_core.StreamOptions(priority=0), cuda_core.ProgramOptions(), cuda_core.typing",
    "resource": "cuda_core.PinnedMemoryResource()",
    "compiler": "cuda_core.Program('extern \"C\" __global__ void f() {}', 'c++').compile('cubin').get_kernel('f')",
}


def first_use(run):
    """Threads that begin with the same call, or each with another one; the import is raced, too."""
    program = f"""
import sys, threading, traceback
sys.setswitchinterval(1e-6)
gate, failures = threading.Barrier({THREADS}), []
def work(call):
    try:
        gate.wait()
        import cuda_core
        eval(call)
        assert cuda_core.Device(0) is cuda_core.Device(0) is cuda_core.Device.get_all_devices()[0]
    except BaseException:
        failures.append(traceback.format_exc())
threads = [threading.Thread(target=work, args=(call,)) for call in sys.argv[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit("".join(failures) or 0)
"""
    calls = list(FIRST_USES.values())
    for number in run.rounds():
        mine = calls if number == 0 else [calls[number % len(calls)]] * THREADS
        process = subprocess.run([sys.executable, "-c", program, *mine], capture_output=True, text=True)
        if process.returncode:
            run.failures.append(f"{mine}: exit code {process.returncode}\n{process.stderr}")
        run.operations += 2 * THREADS


# ---- arguments that change -------------------------------------------------------------------------------------------


def arrays_of_others(run):
    """A dictionary that another thread changes while a launch reads it."""
    from cuda_core import launch

    bench = Bench()
    with bench.device.create_stream() as stream:
        cell = bench.zeros(stream)
        address = cell.handle

        class Array:
            __cuda_array_interface__ = {"data": (address, False), "shape": (1,), "typestr": "<i4", "version": 3}  # noqa: RUF012

        interface, accepted = Array.__cuda_array_interface__, [0] * THREADS

        def work(i):
            for turn in range(20):
                interface["shape"] = tuple([1] * (turn % 5 + 1))
                interface["strides"] = tuple([4] * (turn % 5 + 1))
                interface["data"] = (int(str(address)), False)
                if turn % 7 == i % 7:
                    interface.pop("strides", None)
                try:
                    launch(stream, bench.one, bench.add, Array(), 1)
                    accepted[i] += 1
                except TypeError as error:
                    if "as many ints" not in str(error):
                        raise
            return 20

        for _ in run.rounds():
            run.together(work)
            assert bench.int_of(cell, stream) == 32 * sum(accepted)


def options_of_others(run):
    """Dictionaries and lists that other threads change while they are read: each is read as it was at one moment."""
    from cuda_core import DeviceMemoryResource, LaunchConfig, ObjectCode, Program, launch

    bench = Bench()
    device, cubin, resource = bench.device, bench.code.code, DeviceMemoryResource(0, {"max_size": 1 << 20})
    config, stream_options, event_options, program_options, symbols = {}, {}, {}, {}, {}
    extents, peers = [], []
    dictionaries = [
        (config, {"grid": 5, "block": 2, "shmem_size": 0, "is_cooperative": False}),
        (stream_options, {"nonblocking": True, "priority": 0}),
        (event_options, {"timing_enabled": True, "blocking_sync": True, "ipc_enabled": None}),
        (program_options, {"std": "c++17", "debug": False, "define_macro": "X"}),
        (symbols, {f"name{i}": f"other{i}" for i in range(20)}),
    ]
    lists = [(extents, [2, 3, 4]), (peers, [0, device, 0, device])]

    def change():
        for mapping, entries in dictionaries:
            mapping.update(entries)
            mapping.pop(next(iter(entries)), None)
            mapping.clear()
        for some, entries in lists:
            some[:] = entries
            del some[1:]
            some.clear()

    def read_config():
        with device.create_stream() as stream:
            try:
                launch(stream, config, bench.add, bench.zeros(stream), 1)
            except TypeError as error:
                if "LaunchConfig needs a" not in str(error):  # one of grid and block was not there
                    raise

    def read_extents():
        try:
            seen = LaunchConfig(grid=extents, block=1).grid
        except ValueError as error:
            if "not 0" not in str(error):  # the list was empty
                raise
        else:
            assert seen in ((2, 1, 1), (2, 3, 4))

    def read_peers():
        resource.peer_accessible_by = peers

    def read_symbols():
        seen = ObjectCode.from_cubin(cubin, symbol_mapping=symbols).symbol_mapping
        assert all(value == name.replace("name", "other") for name, value in seen.items())

    def read_program():
        with Program(SOURCE, "c++", program_options) as program:
            assert program.handle

    reads = [
        read_config,
        read_extents,
        read_peers,
        read_symbols,
        read_program,
        lambda: device.create_stream(options=stream_options).close(),
        lambda: device.create_event(options=event_options).close(),
    ]

    def work(i):
        for _ in range(20):
            if i % 2:
                change()
            else:
                for read in reads:
                    read()
        return 20 * (len(dictionaries) + len(lists) if i % 2 else len(reads))

    for _ in run.rounds():
        run.together(work)


SCENARIOS = [
    launches_on_one_stream,
    launches_on_streams_of_their_own,
    allocations_from_one_resource,
    copies_to_and_from_the_host,
    objects_made_once,
    current_device,
    buffer_closed,
    stream_closed,
    stream_closed_that_another_shares,
    event_closed,
    resource_closed,
    program_closed,
    garbage,
    collector_all_the_time,
    compilations,
    first_use,
    arrays_of_others,
    options_of_others,
]


# ---- running them ----------------------------------------------------------------------------------------------------


def run_here(name, seconds, seed):
    """The scenario in this process; its last line says operations and failures."""
    sys.setswitchinterval(1e-6)
    run = Run(seconds, seed)
    scenario = {each.__name__: each for each in SCENARIOS}[name]
    try:
        scenario(run)
    except BaseException as error:
        run.failures.note(error)
    for failure in run.failures:
        print(failure, file=sys.stderr)
    print(f"operations {run.operations}, failures {len(run.failures)}", flush=True)
    return 1 if run.failures else 0


def run_process(name, seconds, seed=0):
    """The same in a fresh process: operations, failures, and what it said. A crash or a hang is a failure."""
    command = [
        sys.executable,
        os.path.abspath(__file__),
        "--here",
        "--seconds",
        str(seconds),
        "--seed",
        str(seed),
        name,
    ]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=120 + 4 * seconds)
    except subprocess.TimeoutExpired as expired:
        return 0, 1, f"no end after {expired.timeout} s"
    lines = process.stdout.splitlines()
    counts = lines[-1].replace(",", "").split() if lines else []
    if len(counts) != 4 or process.returncode not in (0, 1):
        return 0, 1, f"exit code {process.returncode}\n{process.stdout}{process.stderr}"
    return int(counts[1]), max(int(counts[3]), process.returncode), process.stderr


def interpreter():
    """Version and kind: whether this one has a GIL, after the package was imported."""
    code = "import sys, cuda_core; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    has_gil = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "True"
    return sys.version.split()[0] + ("" if has_gil else " free-threaded")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--here", action="store_true", help="one scenario, in this process")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", default=[each.__name__ for each in SCENARIOS])
    given = parser.parse_args()
    if given.here:
        return run_here(given.scenarios[0], given.seconds, given.seed)
    print(f"CPython {interpreter()}, seed {given.seed}", flush=True)
    operations = failures = 0
    for name in given.scenarios:
        did, failed, said = run_process(name, given.seconds, given.seed)
        operations, failures = operations + did, failures + failed
        print(f"{name:36} operations {did}, failures {failed}", flush=True)
        if failed:
            print(said, flush=True)
    print(f"threads {THREADS}, operations {operations}, failures {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
