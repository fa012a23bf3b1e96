#!/bin/sh
# Makes the golden vectors of the emulator's instruction tests on a real GPU:
#
#   tools/golden/make.sh tests/emulator/ops/golden.xz
#
# Needs Python 3.10 or later and an NVIDIA driver that takes PTX 8.6 (CUDA 12.7 or later); no compiler, no network.
# A GPU of compute capability 9.0 covers every form; a smaller one leaves out those that it lacks. Takes about a minute.
# Exit status 1: some forms were refused by the driver, named on stderr; the file holds the others.
set -e
[ $# -ge 1 ] || { echo "usage: $0 OUT [--driver PATH] [--only TEXT]" >&2; exit 2; }
exec python3 "$(dirname "$0")/make.py" "$@"
