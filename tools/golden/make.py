"""Runs every form of forms.py on a device and writes the golden vectors. See make.sh."""

import argparse
import collections
import sys
import time

import forms
import kernel
import operands
import vectors
from device import Device, DriverError

MODULE_FORMS = 64


def modules(wanted):
    """Forms in modules of one family and target, so that one refused form costs few others a second load."""
    groups = collections.defaultdict(list)
    for family, form in wanted:
        groups[family, form.target].append(form)
    for (_, target), members in groups.items():
        for first in range(0, len(members), MODULE_FORMS):
            yield target, [(f"k{first + i}", form) for i, form in enumerate(members[first : first + MODULE_FORMS])]


def measure(device, wanted, columns_of, refused):
    """Yields (form, result columns); what the device will not load goes to `refused` with the reason."""
    for target, named in modules(wanted):
        try:
            loads = [(device.load(kernel.module(named, target)), named)]
        except DriverError:
            loads = []
            for one in named:
                try:
                    loads.append((device.load(kernel.module([one], target)), [one]))
                except DriverError as error:
                    refused.append((one[1], str(error)))
        for module, members in loads:
            for name, form in members:
                try:
                    yield form, device.run(module, name, form, columns_of(form.operands))
                except DriverError as error:
                    refused.append((form, str(error)))
            device.unload(module)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--driver", default="libcuda.so.1", help="the CUDA driver to measure")
    parser.add_argument("--only", default="", help="only forms whose name contains this")
    options = parser.parse_args()
    started = time.monotonic()
    device = Device(options.driver)
    wanted = [(family, form) for family, form in forms.all_forms() if options.only in form.name]
    wanted = [(family, form) for family, form in wanted if form.target <= device.capability]
    sets = {}
    columns = {}

    def columns_of(kinds):
        if kinds not in sets:
            sets[kinds] = operands.make_set(kinds)
            columns[kinds] = list(zip(*sets[kinds], strict=False))
        return columns[kinds]

    refused = []
    measured = list(measure(device, wanted, columns_of, refused))
    vectors.write(options.output, device.name(), sets, measured)
    for form, reason in refused:
        print(f"refused: {form.name}: {reason}", file=sys.stderr)
    count = sum(len(results[0]) for _, results in measured)
    print(
        f"{len(measured)} forms, {count} vectors on {device.name()} in {time.monotonic() - started:.0f} s; "
        f"{len(refused)} refused"
    )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
