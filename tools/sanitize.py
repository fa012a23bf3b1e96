"""Runs the tests under AddressSanitizer and UndefinedBehaviorSanitizer: sanitize.py DIRECTORY [Python test ...]

DIRECTORY is a build with -Db_sanitize=address,undefined. First the faults of tests/sanitize/planted.c must be found,
in a C program and in Python, and a program without a fault must pass: a tool that cannot fail shows nothing. Then the C
tests run with leak detection, and the Python tests on the extension and the emulator of that build, without it: what
CPython itself never frees is not told apart from what we do not. The last line is the figures."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANTED = ROOT / "tests" / "sanitize"
SANITIZE = ("-g", "-fPIC", "-fsanitize=address,undefined")
FAULTS = {"overflow": "heap-buffer-overflow", "undefined": "signed integer overflow", "leak": "detected memory leaks"}
IN_PYTHON = ("overflow", "undefined")
ENDS = "halt_on_error=1:abort_on_error=1:print_stacktrace=1"


def libraries() -> str:
    """The sanitizers' own, which have to be loaded before anything else of a program that was built without them."""
    names = ("libasan.so", "libubsan.so")
    return ":".join(
        subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in names
    )


def for_programs() -> dict[str, str]:
    return dict(os.environ, ASAN_OPTIONS=f"{ENDS}:detect_leaks=1", UBSAN_OPTIONS=ENDS)


def for_python() -> dict[str, str]:
    """AddressSanitizer takes the place of dlopen, so that NVRTC's own search path for its second library is lost."""
    found = importlib.util.find_spec("nvidia.cu13")
    if found is None or not found.submodule_search_locations:
        sys.exit("the tests need NVRTC of PyPI: pip install -r tools/requirements-test.txt")
    where = str(pathlib.Path(next(iter(found.submodule_search_locations))) / "lib")
    return dict(
        os.environ,
        ASAN_OPTIONS=f"{ENDS}:detect_leaks=0",
        UBSAN_OPTIONS=ENDS,
        LD_PRELOAD=libraries(),
        LD_LIBRARY_PATH=where,
        PYTHONMALLOC="malloc",  # so that each block of PyMem is one that the sanitizer knows
    )


def must_be_found(command: list[str], environment: dict[str, str], fault: str) -> None:
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if process.returncode == 0 or FAULTS[fault] not in process.stderr:
        sys.exit(f"the planted {fault} was not found: exit code {process.returncode}\n{process.stderr}")


def find_the_planted(directory: pathlib.Path) -> int:
    """How many planted faults were found, which is all of them or the end."""
    program, library = directory / "planted", directory / "planted.so"
    sources = [str(PLANTED / "planted.c"), str(PLANTED / "planted_main.c")]
    subprocess.run(["gcc", *SANITIZE, *sources, "-o", str(program)], check=True)
    subprocess.run(["gcc", *SANITIZE, "-shared", sources[0], "-o", str(library)], check=True)
    for fault in FAULTS:
        must_be_found([str(program), fault], for_programs(), fault)
    subprocess.run([str(program), "nothing"], check=True, env=for_programs())
    call = "import ctypes, sys; getattr(ctypes.CDLL(sys.argv[1]), 'planted_' + sys.argv[2])(8)"
    for fault in IN_PYTHON:
        must_be_found([sys.executable, "-c", call, str(library), fault], for_python(), fault)
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=for_python())
    return len(FAULTS) + len(IN_PYTHON)


def run_c_tests(build: pathlib.Path) -> tuple[int, int]:
    """How many ran and how many failed. Some are Python programs that load the emulator: all get the libraries."""
    meson = str(pathlib.Path(sys.executable).with_name("meson"))
    command = [meson, "test", "-C", str(build), "--print-errorlogs", "--timeout-multiplier", "5", "--no-rebuild"]
    for_interpreters = f"{sys.executable} {pathlib.Path(__file__).resolve()} --within"
    process = subprocess.run(
        [*command, "--wrapper", for_interpreters], env=for_programs(), stdout=subprocess.PIPE, text=True
    )
    print(process.stdout, flush=True)
    count = {name: int(n) for name, n in re.findall(r"^(Ok|Fail|Timeout): +(\d+)", process.stdout, re.MULTILINE)}
    failed = count.get("Fail", 0) + count.get("Timeout", 0)
    if process.returncode and not failed:
        sys.exit("meson test failed, though no test did")
    return count.get("Ok", 0) + failed, failed


def within(command: list[str]) -> None:
    """Becomes a test of meson's: one that is an interpreter in the environment for Python."""
    environment = for_python() if pathlib.Path(command[0]).name.startswith("python") else dict(os.environ)
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    os.execvpe(command[0], command, environment)


def run_python_tests(build: pathlib.Path, directory: pathlib.Path, tests: list[str]) -> tuple[int, int]:
    package = directory / "python"
    shutil.copytree(ROOT / "python", package, ignore=shutil.ignore_patterns("*.so"))
    for path in (*build.glob("_core*.so"), build / "emulator" / "libcuda_core_emulator.so"):
        shutil.copy2(path, package / "cuda_core" / path.name)
    environment = dict(for_python(), PYTHONPATH=str(package))
    command = [sys.executable, "-m", "pytest", "-q", "--figures", "sanitized", *tests]
    process = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    print(process.stdout, flush=True)
    figures = re.search(r"^sanitized: .*scenarios (\d+).*failures (\d+)$", process.stdout, re.MULTILINE)
    if figures is None or (process.returncode and figures[2] == "0"):
        sys.exit("a finding ended the Python tests, or they did not run")
    return int(figures[1]), int(figures[2])


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == "--within":
        within(arguments[1:])
    build = pathlib.Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        planted = find_the_planted(directory)
        c_tests, c_failed = run_c_tests(build)
        python_tests, python_failed = run_python_tests(build, directory, arguments[1:] or ["tests/python"])
    failed = c_failed + python_failed
    print(f"planted faults found {planted}, C tests {c_tests}, Python tests {python_tests}, failures {failed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
