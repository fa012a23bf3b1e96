"""Builds the wheel against the headers from PyPI, installs it in an environment of its own with the extra [cu13], and
runs the main job there: what a user without a CUDA toolkit gets. Nothing of a toolkit on this machine is used."""

import os
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WANTED = (
    "cuda_core/__init__.py",
    "cuda_core/py.typed",
    "cuda_core/_core.pyi",
    "cuda_core/emulator/libcuda_core_emulator.so",
)
OF_A_TOOLKIT = ("PYTHONPATH", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
USES_HEADERS = """
from cuda_core import Device, LaunchConfig, Program, launch
source = '#include <cuda_fp16.h>\\nextern "C" __global__ void twice(__half *x) { *x = __hadd(*x, *x); }'
device = Device(0)
with device.create_stream() as stream:
    memory = device.allocate(2, stream=stream)
    memory.copy_from(b"\\x00\\x3e", stream=stream)  # 1.5
    launch(stream, LaunchConfig(grid=1, block=1), Program(source, "c++").compile("cubin").get_kernel("twice"), memory)
    result = bytearray(2)
    memory.copy_to(result, stream=stream)
assert bytes(result) == b"\\x00\\x42", result  # 3.0
print("cuda_fp16.h was found, 1.5 + 1.5 = 3.0")
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        where = pathlib.Path(directory)
        venv.create(where / "venv", with_pip=True)
        python = where / "venv" / "bin" / "python"
        environment = {name: value for name, value in os.environ.items() if name not in OF_A_TOOLKIT}

        def run(*command: str | pathlib.Path, cwd: pathlib.Path = where) -> None:
            subprocess.run([str(part) for part in command], check=True, cwd=cwd, env=environment)

        run(python, "-m", "pip", "install", "--quiet", "nvidia-cuda-runtime==13.0.*")
        headers = next(where.glob("venv/lib/python*/site-packages/nvidia/cu13/include"))
        run(
            python,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            where,
            f"-Csetup-args=-Dheaders={headers}",
            ROOT,
        )
        wheel = next(where.glob("*.whl"))
        names = zipfile.ZipFile(wheel).namelist()
        missing = [name for name in WANTED if name not in names]
        if missing:
            sys.exit(f"{wheel.name} lacks {', '.join(missing)}")
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cu13]")
        run(python, "-m", "cuda_core.demo")
        run(python, "-c", USES_HEADERS)
        print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size // 1024} KiB")


main()
