"""Holds the layers of the tree, python/cuda_core -> bindings/ -> core/ -> a driver, of which emulator/ is one.

A lower layer never includes, imports or calls up. core/ and emulator/ know neither Python nor each other; bindings/
sees core/ only through cuda_core.h and makes no driver call of its own; the package imports the standard library and
itself; no CUDA library is linked. Beside that: no file grows too long, and none has unfinished places.

usage: check_layers.py [ROOT]"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
LAYERS = ("core", "bindings", "emulator")
LONGEST = 1000

PYTHON = r"^(Python|structmember|datetime|numpy/.*)\.h$"
CALL = r"\b(?:{})\w*(?=\s*\()"
DRIVER_CALL = CALL.format("cu[A-Z]|nvrtc[A-Z]|nvJitLink[A-Z]|dlopen|dlsym")
PYTHON_CALL = CALL.format("_?Py[A-Z]")


class Layer(NamedTuple):
    """What a directory of C may not do: each rule a pattern and why it is refused."""

    includes: list[tuple[str, str]]
    uses: list[tuple[str, str]]


RULES = {
    "core": Layer(
        [(PYTHON, "core is plain C")],
        [(PYTHON_CALL, "core is plain C"), (CALL.format("em_"), "core reaches the emulator only as a driver")],
    ),
    "emulator": Layer(
        [(PYTHON, "the emulator is plain C")],
        [
            (PYTHON_CALL, "the emulator is plain C"),
            (CALL.format("cc_"), "the emulator is a driver: it knows nothing above"),
        ],
    ),
    "emulator/ptx": Layer([(r"exec/|emulator\.h$|heap\.h$", "the front end knows neither memory nor execution")], []),
    "bindings": Layer(
        [],
        [
            (DRIVER_CALL, "bindings call core, which calls the driver and the compiler"),
            (r"\bcc__\w+", "what begins with cc__ is core's own"),
        ],
    ),
}
LINKED = re.compile(
    r"-l(cuda|nvrtc|nvJitLink|cudart)\b|find_library\('(cuda|nvrtc|nvJitLink|cudart)'|dependency\('cuda'"
)
# Spelt in pieces: this file is looked at, too.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|\bassert\((0|false)\)")


def blank(match: re.Match[str]) -> str:
    return "".join(" " if letter != "\n" else letter for letter in match[0])


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def owner(root: pathlib.Path, path: pathlib.Path, name: str, own: str) -> str:
    """The layer that holds the header `name` as `path` would find it: its own where it is found there."""
    for directory in (path.parent, root / own, *(root / layer for layer in LAYERS), root):
        found = (directory / name).resolve()
        if found.is_file() and found.is_relative_to(root):
            return found.relative_to(root).parts[0]
    return own


def faults_of_c(root: pathlib.Path) -> Iterator[str]:
    for directory, layer in RULES.items():
        own = directory.split("/")[0]
        for path in sorted((root / directory).rglob("*.[ch]")):
            where, text = path.relative_to(root), path.read_text()
            for match in INCLUDE.finditer(text):
                line, name = line_of(text, match.start(2)), match[2]
                for pattern, why in layer.includes:
                    if re.search(pattern, name):
                        yield f"{where}:{line}: includes {name}: {why}"
                other = owner(root, path, name, own) if match[1] == '"' else own
                if own == "bindings" and other == "core" and pathlib.PurePath(name).name != "cuda_core.h":
                    yield f"{where}:{line}: includes {name}: bindings use cuda_core.h only"
                elif other != own and (own, other) != ("bindings", "core"):
                    yield f"{where}:{line}: includes {name} of {other}/"
            code = COMMENT_OR_STRING.sub(blank, text)
            for pattern, why in layer.uses:
                for match in re.finditer(pattern, code):
                    yield f"{where}:{line_of(code, match.start())}: uses {match[0]}: {why}"


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def faults_of_python(root: pathlib.Path) -> Iterator[str]:
    """Optional packages are used when present and never imported to find out: a stub may name them, code may not."""
    allowed = sys.stdlib_module_names | {"cuda_core", "__future__"}
    for path in sorted((root / "python").rglob("*.py")):
        for line, name in imported(ast.parse(path.read_text())):
            if name.split(".")[0] not in allowed:
                yield f"{path.relative_to(root)}:{line}: imports {name}: only the standard library, and what is ours"
            elif name.split(".")[0] == "ctypes":
                yield f"{path.relative_to(root)}:{line}: imports ctypes: the package calls C through bindings/ only"


def faults_of_builds(root: pathlib.Path) -> Iterator[str]:
    for path in sorted(root.rglob("meson.build")):
        if path.relative_to(root).parts[0] != "build" and LINKED.search(path.read_text()):
            yield f"{path.relative_to(root)}: links a CUDA library: they are found at run time"


def faults_of_house(root: pathlib.Path) -> Iterator[str]:
    for directory in (*LAYERS, "python", "tests", "tools", "examples", "benchmarks"):
        for path in sorted((root / directory).rglob("*")):
            if path.suffix not in (".c", ".h", ".def", ".py", ".pyi", ".sh"):
                continue
            text = path.read_text()
            if text.count("\n") > LONGEST:
                yield f"{path.relative_to(root)}: more than {LONGEST} lines: two concepts, split it"
            for match in UNFINISHED.finditer(text):
                yield f"{path.relative_to(root)}:{line_of(text, match.start())}: {match[0]}: unfinished"


def faults(root: pathlib.Path) -> list[str]:
    root = root.resolve()
    return [
        fault for find in (faults_of_c, faults_of_python, faults_of_builds, faults_of_house) for fault in find(root)
    ]


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = faults(root)
    print(*found, f"layers: faults {len(found)}", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
