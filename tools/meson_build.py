"""Configures and compiles a meson build directory: meson_build.py DIRECTORY [meson setup arguments].

The same as setup.py's first half, for builds that are only tested and never installed in place."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import setup  # noqa: E402

setup.build(sys.argv[2:], pathlib.Path(sys.argv[1]))
