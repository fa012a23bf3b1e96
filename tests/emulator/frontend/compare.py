"""Holds the parser against ptxas: the dump of a PTX file must assemble to the same machine code as the file.

    python3 compare.py BUILD/tests/emulator/frontend/dump_frontend FILE.ptx...

Needs ptxas on PATH. Pragmas are advice to ptxas that the parser does not keep, so they are taken out first."""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile


def sections(path):
    """Code and constants of a cubin, by name."""
    data = path.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    found = {}
    for name, kind, _, _, offset, size, *_ in headers:
        start = headers[names][4] + name
        text = data[start : data.index(b"\0", start)].decode()
        if text.startswith((".text", ".nv.constant", ".nv.global.init")):
            found[text] = size if kind == 8 else data[offset : offset + size]
    return found


def assemble(text, target, work, name):
    source, cubin = work / f"{name}.ptx", work / f"{name}.cubin"
    source.write_text(text)
    subprocess.run(["ptxas", "-w", f"-arch={target}", "-c", source, "-o", cubin], check=True)
    return sections(cubin)


def main():
    dump, *files = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for file in files:
            text = pathlib.Path(file).read_text()
            target = re.search(r"\.target\s+(sm_\w+)", text).group(1)
            again = subprocess.run([dump, file], check=True, capture_output=True, text=True).stdout
            one = assemble(re.sub(r"\.pragma[^;]*;", "", text), target, work, "one")
            two = assemble(again, target, work, "two")
            differ = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
            print(f"{file}: {len(one)} sections, {len(differ)} differ", *differ)
            failed |= bool(differ)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
