"""The packer of launch arguments. A kernel with parameters of any size and type is launched with arguments of any kind;
what is accepted is held against what Python's own struct makes of the value, byte for byte."""

import ctypes
import math
import struct

import arrays
import fuzz
import numpy
from cuda_core import launch
from fuzz import choice, take
from hostile import (
    Number,
    begin,
    code,
    expect,
    integer,
    one_thread,
    outcome,
    plain,
    real,
    stream,
    text,
    the_world,
)

UNKNOWN, INTEGER, POINTER, FLOAT, BYTES = range(5)
REFUSED, ANY = "refused", "any"
FORMATS = {2: "<e", 4: "<f", 8: "<d"}


class Parameter:
    """As core describes it. A guessed one is of a kernel of which nothing is known: it is as the argument is."""

    def __init__(self, size, type, guessed=False):
        self.size, self.type, self.guessed = size, type, guessed


def any_parameter():
    type = choice(5)
    if type == POINTER:
        return Parameter(8, type)
    if type == INTEGER:
        return Parameter((1, 2, 4, 8)[choice(4)], type)
    if type == FLOAT:
        return Parameter((2, 4, 8)[choice(3)], type)
    return Parameter((1, 2, 4, 8, 16, 3, 12, 64, 1100)[choice(9)], type)


def signature(parameters):
    offset, listed = 0, []
    for each in parameters:
        align = min(16, each.size & -each.size) or 1
        offset = -(-offset // align) * align
        listed.append((offset, each.size, align, each.type))
        offset += each.size
    return listed


# ---- what the bytes should be ----


def of_float(value, size):
    try:
        return struct.pack(FORMATS[size], value)
    except (OverflowError, KeyError):
        return REFUSED


def of_int(value):
    def bits(parameter):
        if parameter.type == FLOAT:
            try:
                return of_float(float(value), parameter.size)
            except OverflowError:
                return REFUSED
        least = 0 if parameter.type == POINTER else -(2 ** (8 * parameter.size - 1))
        if parameter.type == BYTES or parameter.size not in (1, 2, 4, 8):
            return REFUSED
        if not least <= value < 2 ** (8 * parameter.size):
            return REFUSED
        return (value % 2 ** (8 * parameter.size)).to_bytes(parameter.size, "little")

    return bits


def of_real(value):
    def bits(parameter):
        if parameter.type == FLOAT or (parameter.type == UNKNOWN and parameter.size in (4, 8)):
            return of_float(value, parameter.size)
        return REFUSED

    return bits


def of_complex(value):
    def bits(parameter):
        if parameter.type not in (UNKNOWN, BYTES) or parameter.size not in (8, 16):
            return REFUSED
        halves = [of_float(half, parameter.size // 2) for half in (value.real, value.imag)]
        return REFUSED if REFUSED in halves else b"".join(halves)

    return bits


def of_bits(given, type):
    """Bits of a type, which a parameter of another type does not take."""

    def bits(parameter):
        if BYTES in (type, parameter.type) or parameter.type == UNKNOWN:
            same = type != BYTES or parameter.type in (UNKNOWN, BYTES)
        else:
            same = (type == FLOAT) == (parameter.type == FLOAT)
        return given if same and parameter.size == len(given) else REFUSED

    return bits


def of_pointer(address):
    def bits(parameter):
        if parameter.size != 8 or parameter.type in (FLOAT, BYTES):
            return REFUSED
        return struct.pack("<Q", address)

    return bits


def of_buffer(buffer):
    def bits(parameter):
        return of_pointer(int(buffer.handle))(parameter) if not buffer.is_closed else REFUSED

    return bits


def always(answer):
    return lambda parameter: answer


# ---- arguments, each with what it becomes ----


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_float))


class Text(str):
    __slots__ = ()


class Own(int):
    __slots__ = ()


CTYPES = (ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint64, ctypes.c_bool, ctypes.c_char)
DTYPES = ("i1", "u2", "i4", "u8", "?", "f2", "f4", "f8", "c8", "c16", "V3", "V12", "M8[s]", "m8[us]", ">i4", "S5")
SCALARS = {"i": INTEGER, "u": INTEGER, "b": INTEGER, "f": FLOAT, "c": BYTES, "V": BYTES}


def a_ctypes_scalar():
    kind = choice(len(CTYPES) + 4)
    if kind < len(CTYPES):
        made = CTYPES[kind].from_buffer_copy(take(8).ljust(8, b"\0"))
        return made, of_bits(bytes(made), INTEGER)
    if kind == len(CTYPES):
        made = ctypes.c_double(real())
        return made, of_bits(bytes(made), FLOAT)
    if kind == len(CTYPES) + 1:
        made = ctypes.c_void_p(choice(256))
        return made, of_bits(bytes(made), POINTER)
    if kind == len(CTYPES) + 2:
        made = Pair(choice(256), real())
        return made, of_bits(bytes(made), BYTES)
    return (ctypes.c_int * 3)(1, 2, 3), always(REFUSED)


def a_numpy_scalar():
    dtype = numpy.dtype(DTYPES[choice(len(DTYPES))])
    array = numpy.frombuffer(take(dtype.itemsize).ljust(dtype.itemsize, b"\0"), dtype)
    shape = choice(3)
    made = array[0] if shape == 0 else array.reshape(()) if shape == 1 else array
    if shape == 2:
        return made, always(REFUSED)
    if dtype.byteorder == ">" or dtype.kind not in SCALARS:
        return made, always(ANY)
    if shape == 0 and dtype.kind == "V":  # a scalar of bytes
        return made, of_bits(made.tobytes(), BYTES)
    return made, of_bits(made.tobytes(), SCALARS[dtype.kind])


def a_scalar():
    kind = choice(8)
    if kind == 0:
        value = integer()
        return value, of_int(value)
    if kind == 1:
        value = real()
        return value, of_real(value)
    if kind == 2:
        value = bool(choice(2))
        return value, of_int(value)
    if kind == 3:
        value = complex(real(), real())
        return value, of_complex(value)
    if kind == 4:
        value = Own(integer())
        return value, of_int(value)
    if kind == 5:
        value = take((1, 2, 4, 8, 16, 3, 12, 1100)[choice(8)])
        return value, of_bits(value, BYTES)
    if kind == 6:
        return None, of_pointer(0)
    value = Text(text())
    return value, always(REFUSED)


def an_argument(harmless=False):
    kind = choice(4 if harmless else 8)
    if kind == 0:
        return a_scalar()
    if kind == 1:
        return a_numpy_scalar()
    if kind == 2:
        return a_ctypes_scalar()
    if kind == 3:
        buffer = the_world().buffer()
        return buffer, of_buffer(buffer)
    if kind == 4:
        made, address = arrays.a_tensor()
        return made, of_array(address)
    if kind == 5:
        made, address = arrays.an_interface()
        return made, of_array(address)
    if kind == 6:
        return Number(), always(ANY)
    return plain(), always(ANY)


def of_array(address):
    """address: None where the array must be refused, ANY where hostile code decides."""
    if address == arrays.ANY:
        return always(ANY)
    return always(REFUSED) if address is None else of_pointer(address)


# ---- a launch ----


def is_same(got, wanted, parameter):
    if got == wanted:
        return True
    both = [struct.unpack(FORMATS[len(bits)], bits)[0] for bits in (got, wanted) if len(bits) in FORMATS]
    return len(both) == 2 and all(map(math.isnan, both)) and parameter.type != INTEGER


def guess(argument, bits):
    """The parameter that an argument is by itself."""
    if isinstance(argument, bool):
        return Parameter(1, INTEGER, guessed=True)
    if type(argument) is float:
        return Parameter(8, FLOAT, guessed=True)
    if type(argument) is complex:
        return Parameter(16, BYTES, guessed=True)
    if isinstance(argument, bytes):
        return Parameter(len(argument), BYTES, guessed=True)
    for size in (8, 1, 2, 4, 16, 3, 12):
        for type_ in (UNKNOWN, INTEGER, FLOAT, BYTES):
            if isinstance(bits(Parameter(size, type_)), bytes):
                return Parameter(size, UNKNOWN, guessed=True)
    return Parameter(8, UNKNOWN, guessed=True)


def run():
    world = begin()
    try:
        run_in(world)
    finally:
        world.close()


def run_in(world):
    count = choice(8) or choice(2) * (60 + choice(10))
    many = count > 8
    arguments, wanted = [], []
    for _ in range(count):
        argument, bits = (None, of_pointer(0)) if many and choice(4) else an_argument(harmless=many)
        arguments.append(argument)
        wanted.append(bits)
    is_known = choice(4) != 0
    if is_known:
        parameters = [any_parameter() for _ in range(count + (choice(16) == 1) - (choice(16) == 1 and count > 0))]
    else:
        parameters = list(map(guess, arguments, wanted))
    fuzz.signature(is_known, signature(parameters))
    kernel = code.get_kernel("k")
    fuzz.watch([each.size for each in parameters])
    _, error = outcome(launch, stream, one_thread, kernel, *arguments)
    passed = fuzz.launched()
    expect((error is None) == (passed is not None), "a launch", error, passed)
    if error is None:
        expect(len(arguments) == len(parameters), "as many arguments as parameters")
        hold(arguments, parameters, wanted, passed)
    elif len(arguments) == len(parameters):
        answers = [bits(each) for bits, each in zip(wanted, parameters, strict=True)]
        total = sum(each.size for each in parameters)
        expect(ANY in answers or REFUSED in answers or total > 32764, "refused for nothing", error, arguments, answers)


def hold(arguments, parameters, wanted, passed):
    for argument, parameter, bits, got in zip(arguments, parameters, wanted, passed, strict=True):
        answer = bits(parameter)
        expect(answer != REFUSED, "accepted", argument, vars(parameter), got)
        if answer != ANY:
            expect(is_same(got, answer, parameter), "other bytes", argument, vars(parameter), got, answer)
