"""Holds the layers of the tree: a lower layer never includes or calls up, and no CUDA library is linked.

core/ and emulator/ know neither Python nor each other; bindings/ sees core/ only through cuda_core.h."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

# directory -> (pattern of an include that is refused, why)
RULES = {
    "core": [
        (r"(^|/)(Python|structmember)\.h$", "core is plain C"),
        (r"(^|/)(bindings|emulator)/", "core is below"),
        (r"(^|/)emulator\.h$", "core reaches the emulator only as a driver"),
    ],
    "emulator": [
        (r"(^|/)(Python|structmember)\.h$", "the emulator is plain C"),
        (r"(^|/)(core|bindings)/|cuda_core\.h$|internal\.h$", "the emulator is a driver: it knows nothing above"),
    ],
    "emulator/ptx": [(r"exec/|emulator\.h$", "the front end knows neither memory nor execution")],
    "bindings": [
        (
            r"(^|/)internal\.h$|(^|/)(driver|driver_errors|errors|nvrtc|nvjitlink)\.def$",
            "bindings use cuda_core.h only",
        ),
        (r"(^|/)emulator", "bindings reach the emulator only as a driver"),
    ],
}
LINKED = re.compile(
    r"-l(cuda|nvrtc|nvJitLink|cudart)\b|find_library\('(cuda|nvrtc|nvJitLink|cudart)'|dependency\('cuda'"
)
LONGEST = 1000


def faults():
    for directory, rules in RULES.items():
        for path in sorted((ROOT / directory).rglob("*.[ch]")):
            text = path.read_text()
            for name in INCLUDE.findall(text):
                for pattern, why in rules:
                    if re.search(pattern, name):
                        yield f"{path.relative_to(ROOT)} includes {name}: {why}"
    for directory in ("core", "emulator", "bindings", "python"):
        for path in sorted((ROOT / directory).rglob("*")):
            if path.suffix in (".c", ".h", ".py", ".pyi") and path.read_text().count("\n") > LONGEST:
                yield f"{path.relative_to(ROOT)} has more than {LONGEST} lines: two concepts, split it"
    for path in sorted(ROOT.rglob("meson.build")):
        if "build" not in path.relative_to(ROOT).parts[:1] and LINKED.search(path.read_text()):
            yield f"{path.relative_to(ROOT)} links a CUDA library: they are found at run time"


found = list(faults())
print("\n".join(found) if found else "layers hold")
sys.exit(bool(found))
