"""The file of golden vectors.

An xz stream of one line of JSON, then the numbers, little-endian, each column at its type's width:
  {"device": ..., "sets": [{"kinds": [...], "count": n}],
   "forms": [{"name", "text", "results", "set", "target", "bound"}]}
  operand columns of every set in order, then result columns of every form in order.
"""

import array
import json
import lzma
import sys

from device import CODE
from forms import Form
from operands import width


def write(path, device, sets, measured):
    """`sets`: kinds -> operand tuples; `measured`: list of (form, result columns)."""
    order = list(sets)
    header = {
        "device": device,
        "sets": [{"kinds": kinds, "count": len(sets[kinds])} for kinds in order],
        "forms": [
            {
                "name": form.name,
                "text": form.text,
                "results": form.results,
                "set": order.index(form.operands),
                "target": form.target,
                "bound": form.bound,
            }
            for form, _ in measured
        ],
    }
    parts = [json.dumps(header, separators=(",", ":")).encode() + b"\n"]
    for kinds in order:
        for index, kind in enumerate(kinds):
            parts.append(pack(array.array(CODE[width(kind)], (row[index] for row in sets[kinds]))))
    for _, columns in measured:
        parts += [pack(column) for column in columns]
    with open(path, "wb") as file:
        file.write(lzma.compress(b"".join(parts), preset=9 | lzma.PRESET_EXTREME))


def pack(column):
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def read(path):
    """(device, [(form, operand columns, result columns)])"""
    with lzma.open(path) as file:
        data = memoryview(file.read())
    end = bytes(data).index(b"\n")
    header = json.loads(bytes(data[:end]))
    position = end + 1

    def columns(kinds, count):
        nonlocal position
        taken = []
        for kind in kinds:
            column = array.array(CODE[width(kind)])
            size = count * width(kind) // 8
            column.frombytes(data[position : position + size])
            position += size
            if sys.byteorder == "big":
                column.byteswap()
            taken.append(column)
        return taken

    sets = [columns(s["kinds"], s["count"]) for s in header["sets"]]
    measured = []
    for f in header["forms"]:
        kinds = header["sets"][f["set"]]
        form = Form(f["name"], f["text"], tuple(f["results"]), tuple(kinds["kinds"]), f["target"], f["bound"])
        measured.append((form, sets[f["set"]], columns(form.results, kinds["count"])))
    return header["device"], measured
