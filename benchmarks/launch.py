"""What each call costs: the driver alone in a C loop (the floor), through cuda_core, and through cuda.core and CuPy
where they are installed.

usage: python benchmarks/launch.py [--json FILE] [--only TEXT] [--repeats N]

Nanoseconds a call, the best of 9 loops in each of 4 rounds. `overhead` is what is added to the floor, `aim` what it may
be at most, `ratio` overhead / aim: 1 or less is met. Only differences and ratios of one run mean anything.

The method: loops of 400 calls, since a longer loop of launches fills the driver's queue and then times the GPU; the
stream is waited for between loops; a first loop that is not counted loads modules and fills caches. The floor's driver
is the one that cuda_core opened; all columns run in one process, the primary context current, one row after the other.
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass

COUNT = 400
SOURCE = "\n".join(
    f'extern "C" __global__ void {name}({", ".join(f"{kind}p{i}" for i in range(count))}) {{}}'
    for name, kind, count in (
        ("none", "", 0),
        ("pointers1", "float *", 1),
        ("pointers16", "float *", 16),
        ("ints16", "int ", 16),
        ("ints256", "int ", 256),
    )
)


@dataclass
class Row:
    call: str
    floor: float | None
    ours: float | None
    aim: float  # of the overhead, or of the whole call where whole is true
    whole: bool = False
    theirs: float | None = None
    cupy: float | None = None
    note: str = ""

    @property
    def overhead(self):
        if self.ours is None:
            return None
        return self.ours if self.whole or self.floor is None else self.ours - self.floor

    @property
    def ratio(self):
        return None if self.overhead is None else self.overhead / self.aim


# ---- measuring -----------------------------------------------------------------------------------------------------


LOOP = """
def loop(clock, rounds, {names}):
    begin = clock()
    for _ in rounds:
        {statement}
    return clock() - begin
"""


def best(statement, names, sync, repeats):
    """Nanoseconds of one run of statement; names are its local variables."""
    scope = {}
    exec(LOOP.format(names=", ".join(names), statement=statement), scope)
    loop, results = scope["loop"], []
    gc.disable()
    try:
        for _ in range(repeats + 1):
            sync()
            results.append(loop(time.perf_counter_ns, [None] * COUNT, **names) / COUNT)
    finally:
        gc.enable()
        sync()
    return min(results[1:])


class Floor:
    """benchmarks/floor.c, built for this run."""

    def __init__(self, repeats, driver):
        self.repeats = repeats
        self.library = None
        compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
        if compiler is None:
            print("no C compiler: the floor is left out", file=sys.stderr)
            return
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.c")
        with tempfile.TemporaryDirectory() as directory:
            built = os.path.join(directory, "floor.so")
            command = [compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", source, "-o", built, "-ldl"]
            subprocess.run(command, check=True)
            self.library = ctypes.CDLL(built)
        if self.library.floor_open(driver.encode()) != 0:
            sys.exit(f"{driver} lacks one of the functions of floor.c")

    def __call__(self, name, stream, *arguments):
        if self.library is None:
            return None
        function = getattr(self.library, "floor_" + name)
        function.restype = ctypes.c_double
        given = [a if isinstance(a, ctypes.Array) else ctypes.c_uint64(int(a)) for a in (stream.handle, *arguments)]
        function(1, COUNT, *given)
        result = function(self.repeats, COUNT, *given)
        if result < 0:
            sys.exit(f"floor_{name}: the driver's error {-result:.0f}")
        return result


def driver_path():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if re.search(r"/libcuda(\.so\S*|_core_emulator\S*\.so)$", line.rstrip()):
                return line.split(None, 5)[5].strip()
    sys.exit("no driver is loaded")


# ---- cuda_core and cuda.core: the same calls -----------------------------------------------------------------------


class Package:
    """The calls of every row, through a package with the names of cuda.core: (statement, its variables) by row."""

    def __init__(self, package):
        self.package = package
        device = self.device = package.Device(0)
        device.set_current()
        self.stream = device.create_stream()
        options = package.ProgramOptions(arch=f"sm_{device.arch}")
        module = package.Program(SOURCE, "c++", options).compile("cubin")
        self.kernels = {name: module.get_kernel(name) for name in re.findall(r"void (\w+)\(", SOURCE)}
        self.config = package.LaunchConfig(grid=1, block=1)
        self.buffer = device.allocate(1024, stream=self.stream)
        self.other = device.allocate(1024, stream=self.stream)
        self.event = self.stream.record()
        self.stream.sync()

    def launch(self, kernel, arguments):
        names = {"launch": self.package.launch, "stream": self.stream, "config": self.config}
        # Arguments by name, as a program writes them, where they are few; else one tuple.
        text = "launch(stream, config, kernel, *arguments)" if arguments else "launch(stream, config, kernel)"
        if len(arguments) == 1:
            text = "launch(stream, config, kernel, argument)"
            return text, {**names, "kernel": self.kernels[kernel], "argument": arguments[0]}
        return text, {**names, "kernel": self.kernels[kernel], "arguments": arguments}

    def statements(self):
        device, stream, buffer = self.device, self.stream, self.buffer
        base = {"device": device, "stream": stream, "event": self.event, "buffer": buffer, "other": self.other}
        rows = {
            "launch, no argument": self.launch("none", ()),
            "launch, 1 Buffer": self.launch("pointers1", (buffer,)),
            "launch, 16 Buffers": self.launch("pointers16", (buffer,) * 16),
            "launch, 16 ints": self.launch("ints16", tuple(range(16))),
            "launch, 256 ints": self.launch("ints256", tuple(range(256))),
            "event create + close": ("device.create_event().close()", base),
            "event.is_done": ("event.is_done", base),
            "event.sync": ("event.sync()", base),
            "stream.record(event)": ("stream.record(event)", base),
            "stream.sync": ("stream.sync()", base),
            "stream create + close": ("device.create_stream().close()", base),
            "allocate + close, stream-ordered": ("device.allocate(1024, stream=stream).close()", base),
            "copy device to device, 1 KiB": ("buffer.copy_to(other, stream=stream)", base),
            "fill, 1 KiB": ("buffer.fill(0, stream=stream)", base),
            "Device() current": ("Device()", {"Device": self.package.Device}),
            "device attribute": ("properties.warp_size", {"properties": device.properties}),
        }
        view = self.view()
        if view is not None:
            rows["StridedMemoryView of own Buffer"] = (
                "view(buffer, (256,), itemsize=4)",
                {"view": view.from_buffer, "buffer": buffer},
            )
            for library, make in (("torch tensor", torch_tensor), ("CuPy array", cupy_array)):
                array = make()
                if array is not None:
                    rows[f"StridedMemoryView of a {library}"] = (
                        "view(array, -1)",
                        {"view": view.from_any_interface, "array": array},
                    )
        return rows

    def view(self):
        try:
            module = __import__(self.package.__name__ + ".utils", fromlist=["StridedMemoryView"])
            return module.StridedMemoryView
        except (ImportError, AttributeError):
            return None

    def measure(self, call, repeats):
        """Nanoseconds, or None where the package has no such call."""
        entry = self.statements().get(call)
        return None if entry is None else best(*entry, self.stream.sync, repeats)


def torch_tensor():
    try:
        import torch
    except ImportError:
        return None
    return torch.zeros(256, device="cuda") if torch.cuda.is_available() else None


def cupy_array():
    try:
        import cupy

        return cupy.zeros(256, dtype="f4")
    except Exception:  # noqa: BLE001 - whatever keeps CuPy from working here, its column stays empty
        return None


class CuPy:
    def __init__(self):
        import cupy

        self.stream = cupy.cuda.Stream(non_blocking=True)
        module = cupy.RawModule(code=SOURCE)
        array = cupy.zeros(256, dtype="f4")
        event = cupy.cuda.Event(disable_timing=True)
        base = {"grid": (1,), "stream": self.stream, "event": event, "Stream": cupy.cuda.Stream}
        event.record(self.stream)
        self.rows = {
            "launch, no argument": ("kernel(grid, grid, ())", {**base, "kernel": module.get_function("none")}),
            "launch, 1 Buffer": (
                "kernel(grid, grid, (array,))",
                {**base, "kernel": module.get_function("pointers1"), "array": array},
            ),
            "launch, 16 Buffers": (
                "kernel(grid, grid, arrays)",
                {**base, "kernel": module.get_function("pointers16"), "arrays": (array,) * 16},
            ),
            "event.is_done": ("event.done", base),
            "event.sync": ("event.synchronize()", base),
            "stream.record(event)": ("event.record(stream)", base),
            "stream.sync": ("stream.synchronize()", base),
            "stream create + close": ("Stream(non_blocking=True)", base),
        }

    def measure(self, call, repeats):
        if call not in self.rows:
            return None
        with self.stream:
            return best(*self.rows[call], self.stream.synchronize, repeats)


# ---- rows ----------------------------------------------------------------------------------------------------------


def floors(floor, ours):
    """The floor of each row, as a function that measures it."""

    def launch(kernel, values):
        slots = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        result = floor("launch", ours.stream, ours.kernels[kernel].handle, slots)
        del values
        return result

    stream, event, buffer, other = ours.stream, ours.event.handle, ours.buffer.handle, ours.other.handle
    pointers = [ctypes.c_uint64(int(buffer)) for _ in range(16)]
    ints = [ctypes.c_int(i) for i in range(256)]
    pool = ours.device.memory_resource.handle
    return {
        "launch, no argument": (lambda: launch("none", []), 90),
        "launch, 1 Buffer": (lambda: launch("pointers1", pointers[:1]), 120),
        "launch, 16 Buffers": (lambda: launch("pointers16", pointers), 300),
        "launch, 16 ints": (lambda: launch("ints16", ints[:16]), 350),
        "launch, 256 ints": (lambda: launch("ints256", ints), 3500),
        "event create + close": (lambda: floor("event", stream), 150),
        "event.is_done": (lambda: floor("event_query", stream, event), 50),
        "event.sync": (lambda: floor("event_synchronize", stream, event), 70),
        "stream.record(event)": (lambda: floor("record", stream, event), 70),
        "stream.sync": (lambda: floor("synchronize", stream), 70),
        "stream create + close": (lambda: floor("stream", stream), 250),
        "allocate + close, stream-ordered": (lambda: floor("allocate", stream, pool), 200),
        "copy device to device, 1 KiB": (lambda: floor("copy", stream, other, buffer, 1024), 120),
        "fill, 1 KiB": (lambda: floor("fill", stream, buffer, 1024), 120),
    }


WHOLE = {
    "Device() current": ("current_device", 60),
    "device attribute": ("attribute", 40),
    "StridedMemoryView of own Buffer": (None, 200),
    "StridedMemoryView of a torch tensor": (None, 250),
    "StridedMemoryView of a CuPy array": (None, 400),
}


def import_milliseconds(name, repeats):
    """The shortest import in a fresh process, in milliseconds, and how many modules it brought; None where it fails."""
    source = (
        "import sys, time\nbefore = set(sys.modules)\nbegin = time.perf_counter()\n"
        f"import {name}\nprint(1e3 * (time.perf_counter() - begin), len(set(sys.modules) - before))"
    )
    results = []
    for _ in range(repeats):
        process = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
        if process.returncode != 0:
            return None, None
        milliseconds, modules = process.stdout.split()
        results.append((float(milliseconds), int(modules)))
    return min(results)


def other_packages():
    found = {}
    for name, make in (("cuda.core", lambda: Package(__import__("cuda.core", fromlist=["core"]))), ("CuPy", CuPy)):
        try:
            found[name] = make()
        except Exception as error:  # noqa: BLE001 - not installed, or too old, or without a GPU: its column stays empty
            print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def measure(repeats, only):
    import cuda_core

    ours = Package(cuda_core)
    floor = Floor(repeats, driver_path())
    others = other_packages()

    def columns(call):
        def through(name):
            with contextlib.suppress(Exception):
                return others[name].measure(call, repeats)
            return None

        return {"theirs": through("cuda.core"), "cupy": through("CuPy")}

    rows = []
    for call, (driver, aim) in floors(floor, ours).items():
        if only in call:
            rows.append(Row(call, driver(), ours.measure(call, repeats), aim, **columns(call)))
    for call, (driver, aim) in WHOLE.items():
        if only in call:
            below = floor(driver, ours.stream) if driver else None
            rows.append(Row(call, below, ours.measure(call, repeats), aim, whole=True, **columns(call)))
    if only in "import, milliseconds":
        mine, modules = import_milliseconds("cuda_core", repeats)
        theirs, their_modules = import_milliseconds("cuda.core", repeats)
        cupys, _ = import_milliseconds("cupy", min(repeats, 3))
        note = f"{modules} modules" + (f", cuda.core {their_modules}" if their_modules else "")
        rows.append(Row("import, milliseconds", None, mine, 12, whole=True, theirs=theirs, cupy=cupys, note=note))
    return ours.device, others, rows


# ---- showing -------------------------------------------------------------------------------------------------------


def number(value, digits=None):
    if value is None:
        return ""
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1
    return f"{value:.{digits}f}"


def table(rows):
    lines = [
        "| call | floor | cuda_core | overhead | aim | ratio | cuda.core | its overhead | CuPy |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        added = None if row.theirs is None or row.floor is None or row.whole else row.theirs - row.floor
        cells = [
            row.call + (", whole call" if row.whole and "import" not in row.call else ""),
            number(row.floor),
            number(row.ours),
            number(row.overhead),
            number(row.aim, 0),
            number(row.ratio, 2),
            number(row.theirs),
            number(added),
            number(row.cupy),
        ]
        lines.append("| " + " | ".join(cells) + " |" + (f" {row.note}" if row.note else ""))
    return "\n".join(lines)


def versions(device, others):
    import cuda_core

    parts = [
        device.name + (" (emulated)" if device.is_emulated else ""),
        f"Python {platform.python_version()}",
        f"cuda_core {cuda_core.__version__}",
    ]
    for name in others:
        module = __import__("cupy") if name == "CuPy" else __import__("cuda.core", fromlist=["core"])
        parts.append(f"{name} {getattr(module, '__version__', '?')}")
    return ", ".join([*parts, sysconfig.get_platform(), time.strftime("%Y-%m-%d")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--only", default="", metavar="TEXT", help="the rows whose name contains this")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    device, others, rows = measure(options.repeats, options.only)
    print(versions(device, others), end="\n\n")
    print(table(rows))
    ratios = [row.ratio for row in rows if row.ratio is not None]
    if ratios:
        met, near = (sum(ratio <= bound for ratio in ratios) for bound in (1, 2))
        print(f"\n{met} of {len(ratios)} within their aim, {near} within twice")
    if options.json:
        figures = [{**asdict(row), "overhead": row.overhead, "ratio": row.ratio} for row in rows]
        with open(options.json, "w") as file:
            json.dump({"versions": versions(device, others), "rows": figures}, file, indent=1)


if __name__ == "__main__":
    main()
