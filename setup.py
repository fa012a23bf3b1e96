#!/usr/bin/env python3
"""Builds in place with the meson and ninja on this machine, and asks no package index: for nodes without a network.

usage: python setup.py build_ext --inplace [-Dmeson-option=value ...]

The extension and the emulated driver land in python/cuda_core/, so PYTHONPATH=python is all that is needed. Wheels and
editable installs go through pyproject.toml (meson-python); both read the one meson.build."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent


def tool(name: str) -> str:
    """The command that runs `name`: the module of this Python where it has one, else the program on PATH."""
    beside = pathlib.Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        sys.exit(f"{name} is needed to build: pip install {name}, or take your system's package of that name")
    return found


def build(options: list[str], directory: pathlib.Path | None = None) -> pathlib.Path:
    if directory is None:
        directory = ROOT / "build" / f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    environment = dict(os.environ, NINJA=tool("ninja"))
    setup = [tool("meson"), "setup", str(directory), str(ROOT), f"-Dpython_interpreter={sys.executable}", *options]
    if (directory / "build.ninja").exists():
        setup.append("--reconfigure")
    subprocess.run(setup, check=True, env=environment)
    subprocess.run([tool("meson"), "compile", "-C", str(directory)], check=True, env=environment)
    return directory


def install_in_place(directory: pathlib.Path) -> None:
    package = ROOT / "python" / "cuda_core"
    for pattern in ("_core*.so", "emulator/libcuda_core_emulator.so"):
        built = [path for path in directory.glob(pattern) if path.is_file()]
        if not built:
            sys.exit(f"nothing was built that matches {pattern} in {directory}")
        for path in built:
            # Replace, never overwrite: a running process may have the old file mapped.
            fresh = package / (path.name + ".new")
            shutil.copy2(path, fresh)
            os.replace(fresh, package / path.name)


def main(arguments: list[str]) -> None:
    if arguments[:2] != ["build_ext", "--inplace"]:
        sys.exit(__doc__)
    install_in_place(build(arguments[2:]))


if __name__ == "__main__":
    main(sys.argv[1:])
