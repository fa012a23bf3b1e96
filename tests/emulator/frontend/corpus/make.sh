#!/bin/sh
# Makes the PTX of this directory anew with the nvcc on PATH (13.0 made what is kept). Line tables name files without
# their directories.
set -e
cd "$(dirname "$0")"
make() { # source, target, name, further options
    source=$1 target=$2 name=$3
    shift 3
    nvcc -ptx -std=c++17 -w -arch="$target" "$@" "$source.cu" -o "$name.ptx"
    sed -i -E 's|^(\s*\.file[^"]*")[^"]*/|\1|; /^\/\/ Compiler Build ID/d' "$name.ptx"
}
make kernels sm_75 kernels_75
make kernels sm_90a kernels_90a_lineinfo -lineinfo
make kernels sm_120 kernels_120_rdc -rdc=true
make halves sm_80 halves_80
make halves sm_100a halves_100a
make textures sm_86 textures_86
make matrices sm_80 matrices_80
make warps sm_80 warps_80
make warps sm_90 warps_90
make clusters sm_90a clusters_90a
