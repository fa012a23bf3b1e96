#!/usr/bin/env bash
# On a machine with a GPU: builds in place without a package index, runs the C tests, the suite and the benchmarks, and
# ends with a short table. Logs and results go into the directory given (a temporary one without).
#
# usage: tools/gpu_check.sh [DIRECTORY]
# PARTS="build c-tests suite benchmarks golden" chooses; without it: build c-tests suite benchmarks.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
mkdir -p "$out"
parts=${PARTS:-build c-tests suite benchmarks}
python=${PYTHON:-python3}
export PYTHONPATH=$PWD/python PYTHONUNBUFFERED=1
failures=0
table=()

step() { # step NAME COMMAND...
    local name=$1 start=$SECONDS status=0
    shift
    [[ " $parts " == *" $name "* ]] || return 0
    "$@" >"$out/$name.log" 2>&1 || status=$?
    table+=("$(printf '%-12s %-8s %4d s  %s' "$name" "$([ $status -eq 0 ] && echo passed || echo "failed:$status")" \
        $((SECONDS - start)) "$(grep -v '^[[:space:]]*$' "$out/$name.log" | tail -n 1 | cut -c1-110)")")
    [ $status -eq 0 ] || { failures=$((failures + 1)); tail -n 40 "$out/$name.log"; }
}

core_tests() {
    local meson=meson
    command -v meson >/dev/null || meson="$python -m mesonbuild.mesonmain"
    $meson test -C "build/cp$($python -c 'import sys; print("%d%d" % sys.version_info[:2])')" --print-errorlogs
}
benchmarks() {
    $python benchmarks/launch.py --json "$out/launch.json" && $python benchmarks/emulator.py
}

step build $python setup.py build_ext --inplace
step golden tools/golden/make.sh "$out"
step c-tests core_tests
step suite $python -m pytest -p no:cacheprovider -q
step benchmarks benchmarks
[[ " $parts " == *" benchmarks "* ]] && cat "$out/benchmarks.log"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${table[@]}"
exit $((failures > 0))
