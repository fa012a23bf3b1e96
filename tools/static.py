"""Reads the tree with static checkers: ruff, mypy (strict), the layers, and gcc's analyzer over bindings/.

Each checker is first given a small bad file that it must report: one that does not is broken, and that is a finding.
The C is compiled as build/ compiles it, without code being made. The last line gives the figures."""

import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ["setup.py", *(f"tools/{path.name}" for path in ROOT.glob("tools/*.py")), "examples", "python/cuda_core"]
FINDING = re.compile(r"[^: ]+:\d+:(\d+:)? (?!note)")
LEAK = """#include <stdlib.h>
int leak(int stop) {
    char *text = malloc(4);
    if (text && stop) return 2;
    free(text);
    return 0;
}
"""


def said(command: list[str], cwd: pathlib.Path = ROOT) -> list[str]:
    """What the command reports, a line a finding; one that fails in silence is a finding, too."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    found = [line for line in lines if FINDING.match(line)]
    return found or ([f"{shlex.join(command)}: exit {done.returncode}: {lines[-1:]}"] if done.returncode else [])


def ruff(*paths: str) -> list[str]:
    return said([sys.executable, "-m", "ruff", "check", "--output-format", "concise", *paths])


def mypy(*paths: str) -> list[str]:
    return said([sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *paths])


def layers(root: str) -> list[str]:
    return said([sys.executable, str(ROOT / "tools" / "check_layers.py"), root])


def gcc_analyzer(arguments: list[str], directory: pathlib.Path) -> list[str]:
    return said(["gcc", "-fanalyzer", "-fdiagnostics-plain-output", *arguments, "-S", "-o", "/dev/null"], directory)


def analyzed(build: pathlib.Path) -> list[tuple[list[str], pathlib.Path]]:
    """How the build compiles each file of bindings/, at -O0: the analyzer reads the code as it is written."""
    units = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        kept = [word for word in words if word.startswith(("-I", "-D", "-std", "-isystem"))]
        if "/bindings/" in entry["file"]:
            units.append(([*kept, entry["file"]], pathlib.Path(entry["directory"])))
    return units


def broken(where: pathlib.Path) -> list[str]:
    """The checkers that do not see the fault planted for them."""
    (where / "core").mkdir()
    (where / "core" / "up.c").write_text("#include <Python.h>\n")
    (where / "leak.c").write_text(LEAK)
    (where / "bad.py").write_text("import os\n\n\ndef count(text: str) -> int:\n    return text\n")
    bad = str(where / "bad.py")
    tried = {
        "ruff": (ruff(bad), "F401"),
        "mypy": (mypy(bad), "return-value"),
        "layers": (layers(str(where)), "core is plain C"),
        "gcc -fanalyzer": (gcc_analyzer(["leak.c"], where), "-Wanalyzer-malloc-leak"),
    }
    return [f"{name} does not report {fault}" for name, (found, fault) in tried.items() if fault not in str(found)]


def main() -> int:
    units = analyzed(pathlib.Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as directory:
        found = broken(pathlib.Path(directory))
    found += [*ruff("."), *mypy(*PYTHON), *layers(str(ROOT))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for lines in pool.map(lambda unit: gcc_analyzer(*unit), units):
            found += lines
    files = len(units) + sum(len(list((ROOT / path).rglob("*.py"))) or 1 for path in PYTHON)
    print(*found, f"files {files}, checkers 4, findings {len(found)}", sep="\n")
    return 1 if found or not units else 0


if __name__ == "__main__":
    sys.exit(main())
