"""Arrays of other libraries with any contents, each with the address that a kernel must get for it: DLPack's tensors
and dictionaries of __cuda_array_interface__. None: it must be refused. ANY: hostile code decides."""

import fuzz
from fuzz import choice, take
from hostile import Key, Number, integer, memory, noted, plain, text, the_world

ANY = "any"
CUDA, CUDA_HOST, CUDA_MANAGED = 2, 3, 13
host_memory = bytearray(64)
ADDRESS = int(memory.handle)


def extents(count):
    return tuple(small_or_any() for _ in range(count))


def small_or_any():
    return choice(5) if choice(8) else integer()


def wrapped(value, bits=64):
    """As C reads it into a signed integer."""
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def dense_strides(shape, unit=1):
    strides = []
    for extent in reversed(shape):
        strides.append(unit)
        unit *= extent
    return tuple(map(wrapped, reversed(strides)))


def is_dense(shape, strides, unit=1):
    """Whether the elements lie one after the other, in C's order or in Fortran's."""
    if 0 in shape:
        return True

    def follows(pairs):
        step = unit
        for extent, stride in pairs:
            if extent != 1 and stride != step:
                return False
            step *= extent
            if not -(2**63) <= step < 2**63:
                return False
        return True

    pairs = list(zip(shape, strides, strict=True))
    return follows(reversed(pairs)) or follows(pairs)


def an_address():
    """Mostly memory of the device."""
    kind = choice(8)
    if kind < 5:
        return ADDRESS + choice(256)
    if kind == 5:
        return 0
    if kind == 6:
        return id(host_memory)
    return integer() % 2**64


def reaches_device(address):
    return ADDRESS <= address < ADDRESS + 256


# ---- DLPack ----


class Tensor:
    """An array that exports what the input says."""

    def __init__(self, capsule, device, harms):
        self.capsule, self.device, self.harms = capsule, device, harms

    def __dlpack__(self, **keywords):
        if self.harms:
            the_world().harm()
        return self.capsule()

    def __dlpack_device__(self):
        if self.harms:
            the_world().harm()
        return self.device


class OldTensor(Tensor):
    """It knows nothing of versions."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__()


def a_tensor():
    harms = choice(4) == 1
    shape = None if choice(16) == 1 else extents((1, 0, 2, 3, 70)[choice(5)])
    count = len(shape or ())
    dimensions = count if choice(8) else wrapped(integer(), 32)
    strides = (None, dense_strides, extents)[choice(3)]
    if strides is not None:
        strides = strides(shape) if strides is dense_strides and shape is not None else extents(count)
    if (shape is not None or strides is not None) and dimensions > count:
        dimensions = count  # no consumer could notice
    is_versioned = choice(2) == 1
    version = (1, choice(3)) if choice(8) else (integer() % 2**32, integer() % 2**32)
    claimed = (CUDA, 0) if choice(8) else (choice(16), choice(3))
    real = claimed if choice(8) else (choice(16), choice(3))
    address, offset = an_address(), (0 if choice(4) else integer() % 2**64)
    name = "dltensor_versioned" if is_versioned else "dltensor"
    if choice(16) == 1:
        name = ("used_dltensor", "other", "")[choice(3)]
    on_delete = (lambda: the_world().harm(can_raise=False)) if harms else None
    dtype = tuple(take(3).ljust(3, b"\0"))

    def capsule():
        return fuzz.tensor(
            is_versioned, version, integer() % 2**64, address, real, dimensions, dtype, shape, strides, offset,
            choice(2) == 1, on_delete, name,
        )  # fmt: skip

    right = name != "other" and name in ("dltensor", "dltensor_versioned") and (not is_versioned or version[0] == 1)
    right = right and claimed == real and claimed[0] in (CUDA, CUDA_HOST, CUDA_MANAGED)
    right = right and (claimed[0] != CUDA or claimed[1] == 0)
    right = right and dimensions >= 0 and (shape is not None or dimensions == 0)
    used = tuple(map(wrapped, (shape or ())[: max(dimensions, 0)]))
    right = right and all(extent >= 0 for extent in used)
    steps = None if strides is None else tuple(map(wrapped, strides[: max(dimensions, 0)]))
    right = right and (steps is None or is_dense(used, steps))
    right = right and address + offset < 2**64 and (0 in used or reaches_device(address + offset))
    if not harms and choice(16) != 1:
        made = (OldTensor if choice(4) == 1 else Tensor)(capsule, claimed, harms)
        return made, address + offset if right else None
    if choice(2):
        return Tensor(plain, claimed, harms), ANY
    return Tensor(capsule, plain(1) if choice(2) else claimed, harms), ANY


# ---- __cuda_array_interface__ ----


class Interface:
    """An array whose interface is any object."""

    def __init__(self, interface, harms):
        self.interface, self.harms = interface, harms

    @property
    def __cuda_array_interface__(self):
        if self.harms:
            the_world().harm()
        return self.interface


TYPES = (("<f4", 4), ("|u1", 1), (">i8", 8), ("<c16", 16), ("|V12", 12), ("|b1", 1))
WRONG_TYPES = ("", "f4", "<f", "<f-4", "<f4x", "?f4", "<g4", "<f99999999999999999999", "<f0")


def an_interface():
    typestr, unit = TYPES[choice(len(TYPES))]
    shape = extents((1, 0, 2, 3, 65)[choice(5)])
    kind = choice(3)
    strides = None if kind == 0 else dense_strides(shape, unit) if kind == 1 else extents(len(shape))
    address = an_address()
    interface = {"shape": shape, "typestr": typestr, "data": (address, choice(2) == 1), "version": choice(4)}
    if strides is not None or choice(2):
        interface["strides"] = strides
    if choice(2):
        interface["stream"] = (None, 1, 2)[choice(3)]
    right = len(shape) <= 64 and all(0 <= extent < 2**63 for extent in shape)
    if strides is not None:
        right = right and all(-(2**63) <= stride < 2**63 for stride in strides) and is_dense(shape, strides, unit)
    right = right and (0 in shape or reaches_device(address))
    if choice(4):
        return Interface(interface, harms=False), address if right else None
    right = change(interface, right)
    return Interface(noted(interface), harms=choice(2) == 1), None if right is False else ANY


def change(interface, right):
    """Breaks it in one place. False where it must then be refused."""
    kind = choice(8)
    names = ("shape", "typestr", "data", "version", "strides", "stream", "mask", "descr")
    if kind == 0:
        interface["typestr"] = WRONG_TYPES[choice(len(WRONG_TYPES))]
        return False
    if kind == 1:
        interface["version"] = (4, -1, None, "3", 2**70)[choice(5)]
        return False
    if kind == 2:
        interface["mask"] = Interface({}, harms=False)
        return False
    name = names[choice(len(names))]
    if kind == 3:
        interface.pop(name, None)
        return False if name in ("shape", "typestr", "data", "version") else ANY
    if kind == 4:
        value = interface.pop(name, None)
        interface[Key(name)] = value
    elif kind == 5:
        interface["data"] = (Number(), plain(0))
    elif kind == 6:
        interface[text()] = plain(1)
    else:
        interface[name] = plain(2)
    return ANY
