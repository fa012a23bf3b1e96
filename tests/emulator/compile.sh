#!/bin/sh
# Makes the .ptx files of cuda/ anew from their .cu files: needs nvcc. The directives of run_ptx go along, at the end, so
# that line numbers stay. Usage: tests/emulator/compile.sh [architecture]
set -e
cd "$(dirname "$0")/cuda"
for source in *.cu; do
    ptx="${source%.cu}.ptx"
    nvcc -ptx -lineinfo -std=c++17 -arch="${1:-sm_80}" "$source" -o "$ptx"
    sed -i -e "s|\"$PWD/|\"|" -e 's|"/.*/include/|"include/|' "$ptx"
    grep -E '^// (buffer|launch|expect|expect-fault|expect-stdout|expect-stderr|free):' "$source" >> "$ptx"
done
