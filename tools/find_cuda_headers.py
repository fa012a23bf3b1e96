"""Prints the directory of the cuda.h to build against: the first argument, CUDA_HOME or CUDA_PATH, the toolkit on the
machine, or the headers of the PyPI package nvidia-cuda-runtime (a build requirement in pyproject.toml). Only a cuda.h
of CUDA 13.0 or newer serves."""

import os
import pathlib
import re
import sys
import sysconfig
from collections.abc import Iterator

OLDEST = 13000


def candidates() -> Iterator[pathlib.Path]:
    if len(sys.argv) > 1 and sys.argv[1]:
        yield pathlib.Path(sys.argv[1])
        return
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield pathlib.Path(os.environ[variable]) / "include"
    yield pathlib.Path("/usr/local/cuda/include")
    yield from (pathlib.Path("/usr/local").glob("cuda-13*/include"))
    # Inside pip's isolated build the requirement lies on sys.path, not in the interpreter's own site-packages.
    for directory in [*sys.path, sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]:
        if directory:
            yield pathlib.Path(directory) / "nvidia" / "cu13" / "include"


def version(directory: pathlib.Path) -> int:
    try:
        text = (directory / "cuda.h").read_text(errors="replace")
    except OSError:
        return 0
    found = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


for directory in candidates():
    if version(directory) >= OLDEST:
        print(directory)
        sys.exit(0)
sys.exit(
    "no cuda.h of CUDA 13.0 or newer: pip install 'nvidia-cuda-runtime==13.0.*', set CUDA_HOME to a toolkit, "
    "or give meson -Dheaders=DIRECTORY"
)
