"""Launch arguments: every kind that a kernel can be given, checked by a kernel that writes back the bits it received,
and every kind that is refused, before anything reaches the driver."""

import contextlib
import ctypes
import gc
import math
import struct

import pytest
from cuda_core import Buffer, ClosedError, LaunchConfig, LegacyPinnedMemoryResource, MemoryResource, launch
from support import download, upload, zeros

SOURCE = """
#include <cuda_fp16.h>
struct Pair { int number; float real; };
struct Mixed { char small; double large; short tail[3]; };
struct Odd { unsigned char bytes[5]; };
struct Big { int values[200]; };
struct Empty {};
struct alignas(16) Wide { float x, y, z, w; };

template <typename T> __global__ void keep(unsigned char *out, T value)
{
    const unsigned char *from = reinterpret_cast<const unsigned char *>(&value);
    for (unsigned i = 0; i < sizeof(T); i++) out[i] = from[i];
}
"""
TYPES = [
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long long",
    "unsigned long long", "float", "double", "__half", "float2", "double2", "int*", "float4", "int3",
    "Pair", "Mixed", "Odd", "Big", "Wide",
]  # fmt: skip

PLAIN = """
struct Pair { int number; float real; };
extern "C" __global__ void integers(char a, short b, int c, long long d, int *ran) { *ran = 1; }
extern "C" __global__ void reals(float a, double b, int *ran) { *ran = 1; }
extern "C" __global__ void record(Pair a, int *ran) { *ran = 1; }
extern "C" __global__ void one(int *ran) { *ran = 1; }
extern "C" __global__ void none() {}
extern "C" __global__ void sum64(long long *out, PARAMETERS) { *out = SUM; }
"""
ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture(scope="module")
def module(compile):
    return compile(SOURCE, *(f"keep<{name}>" for name in TYPES))


@pytest.fixture
def received(device, stream, module):
    """received(type, argument, size): the bytes that keep<type> found in its parameter."""

    def received(type_name, argument, size):
        out = device.allocate(max(size, 1) + 8, stream=stream)
        out.fill(0xEE, stream=stream)
        launch(stream, ONE, module.get_kernel(f"keep<{type_name}>"), out, argument)
        data = download(out, stream)
        assert data[size : size + 8] == b"\xee" * 8
        return data[:size]

    return received


# ---- numbers of Python ---------------------------------------------------------------------------------------------

INTEGERS = {
    "char": "b", "signed char": "b", "unsigned char": "B", "short": "h", "unsigned short": "H", "int": "i",
    "unsigned int": "I", "long long": "q", "unsigned long long": "Q",
}  # fmt: skip


@pytest.mark.parametrize("type_name", INTEGERS)
def test_int(received, type_name):
    code = INTEGERS[type_name]
    bits = 8 * struct.calcsize(code)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if code.islower() else (0, 2**bits - 1)
    for value in {0, 1, 100, low, high, low + 1, high - 1}:
        assert received(type_name, value, bits // 8) == struct.pack("<" + code, value), value


@pytest.mark.parametrize("type_name", ["char", "short", "int", "long long"])
def test_int_that_does_not_fit(received, type_name):
    bits = 8 * struct.calcsize(INTEGERS[type_name])
    for value in (2**bits, -(2 ** (bits - 1)) - 1, 2**200, -(2**200)):
        with pytest.raises(OverflowError):
            received(type_name, value, bits // 8)


def test_int_subclasses_and_index(received):
    import enum

    class Number(enum.IntEnum):
        SEVEN = 7

    class Index:
        def __index__(self):
            return 300

    assert received("int", Number.SEVEN, 4) == struct.pack("<i", 7)
    assert received("int", Index(), 4) == struct.pack("<i", 300)


def test_bool(received):
    assert received("bool", True, 1) == b"\x01"
    assert received("bool", False, 1) == b"\x00"
    assert received("int", True, 4) == struct.pack("<i", 1)
    assert received("long long", False, 8) == bytes(8)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -2.25, 0.1, 1e-40, 3.4e38, math.inf, -math.inf, math.pi])
def test_float(received, value):
    assert received("float", value, 4) == struct.pack("<f", value)
    assert received("double", value, 8) == struct.pack("<d", value)


def test_nan(received):
    assert math.isnan(struct.unpack("<f", received("float", math.nan, 4))[0])
    assert math.isnan(struct.unpack("<d", received("double", math.nan, 8))[0])


def test_int_for_a_real(received):
    for value in (0, 1, -3, 2**24, 10**6, -(2**53)):
        assert received("double", value, 8) == struct.pack("<d", value)
    assert received("float", 5, 4) == struct.pack("<f", 5)
    assert received("float", True, 4) == struct.pack("<f", 1)
    with pytest.raises(OverflowError):
        received("double", 10**400, 8)
    with pytest.raises(OverflowError):
        received("float", 10**60, 4)


def test_float_beyond_the_range_of_float(received):
    with pytest.raises(OverflowError):
        received("float", 1e300, 4)
    assert received("double", 1e300, 8) == struct.pack("<d", 1e300)


def test_float_subclass(received):
    class Metres(float):
        pass

    assert received("float", Metres(2.5), 4) == struct.pack("<f", 2.5)


def test_complex(received):
    assert received("float2", 1.5 - 2j, 8) == struct.pack("<2f", 1.5, -2)
    assert received("double2", 1.5 - 2j, 16) == struct.pack("<2d", 1.5, -2)


def test_half(received):
    numpy = pytest.importorskip("numpy")
    assert received("__half", numpy.float16(1.5), 2) == numpy.float16(1.5).tobytes()


# ---- scalars of NumPy and ctypes -----------------------------------------------------------------------------------

NUMPY = [
    ("bool", "bool_", 1), ("char", "int8", -5), ("unsigned char", "uint8", 250), ("short", "int16", -300),
    ("unsigned short", "uint16", 60000), ("int", "int32", -70000), ("unsigned int", "uint32", 4 * 10**9),
    ("long long", "int64", -(2**60)), ("unsigned long long", "uint64", 2**64 - 1), ("float", "float32", 0.1),
    ("double", "float64", 0.1), ("__half", "float16", 1.5), ("float2", "complex64", 1 - 2j),
    ("double2", "complex128", 3 + 4j),
]  # fmt: skip


@pytest.mark.parametrize(("type_name", "dtype", "value"), NUMPY)
def test_numpy_scalar_keeps_its_bits(received, type_name, dtype, value):
    numpy = pytest.importorskip("numpy")
    scalar = getattr(numpy, dtype)(value)
    assert received(type_name, scalar, scalar.nbytes) == scalar.tobytes()


@pytest.mark.parametrize(("type_name", "dtype", "value"), NUMPY)
def test_numpy_array_without_dimensions(received, type_name, dtype, value):
    numpy = pytest.importorskip("numpy")
    array = numpy.array(value, dtype=dtype)
    assert array.shape == ()
    assert received(type_name, array, array.nbytes) == array.tobytes()


def test_numpy_scalar_signed_for_unsigned_keeps_its_bits(received):
    numpy = pytest.importorskip("numpy")
    assert received("unsigned int", numpy.int32(-1), 4) == b"\xff" * 4
    assert received("int", numpy.uint32(2**32 - 1), 4) == b"\xff" * 4


def test_numpy_nan_payload(received):
    numpy = pytest.importorskip("numpy")
    payload = numpy.array([0x7FC12345], dtype=numpy.uint32).view(numpy.float32)[0]
    assert received("float", payload, 4) == struct.pack("<I", 0x7FC12345)


@pytest.mark.parametrize(
    ("type_name", "dtype"),
    [
        ("int", "int64"), ("int", "int16"), ("int", "float32"), ("float", "float64"), ("float", "float16"),
        ("double", "float32"), ("float", "int32"), ("long long", "int32"), ("long long", "float64"),
        ("float2", "complex128"), ("char", "int16"),
    ],
)  # fmt: skip
def test_numpy_scalar_of_another_type(received, type_name, dtype):
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError):
        received(type_name, getattr(numpy, dtype)(1), 8)


@pytest.mark.parametrize(
    ("type_name", "scalar"),
    [
        ("bool", ctypes.c_bool(True)),
        ("char", ctypes.c_char(b"x")),
        ("char", ctypes.c_int8(-5)),
        ("unsigned char", ctypes.c_uint8(200)),
        ("short", ctypes.c_int16(-300)),
        ("int", ctypes.c_int(-70000)),
        ("unsigned int", ctypes.c_uint32(2**32 - 1)),
        ("long long", ctypes.c_longlong(-(2**60))),
        ("unsigned long long", ctypes.c_uint64(2**64 - 1)),
        ("unsigned long long", ctypes.c_size_t(2**40)),
        ("float", ctypes.c_float(0.1)),
        ("double", ctypes.c_double(0.1)),
    ],
)
def test_ctypes_scalar(received, type_name, scalar):
    assert received(type_name, scalar, ctypes.sizeof(scalar)) == bytes(scalar)


def test_ctypes_scalar_of_another_type(received):
    for type_name, scalar in (
        ("int", ctypes.c_int64(1)),
        ("int", ctypes.c_float(1)),
        ("float", ctypes.c_double(1)),
        ("float", ctypes.c_int(1)),
        ("double", ctypes.c_float(1)),
        ("long long", ctypes.c_int(1)),
    ):
        with pytest.raises(TypeError):
            received(type_name, scalar, 8)


def test_ctypes_pointer_value(device, stream, received):
    buffer = device.allocate(16, stream=stream)
    address = int(buffer.handle)
    assert received("int*", ctypes.c_void_p(address), 8) == struct.pack("<Q", address)


# ---- structures by value -------------------------------------------------------------------------------------------


class Pair(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("real", ctypes.c_float))


class Mixed(ctypes.Structure):
    _fields_ = (("small", ctypes.c_char), ("large", ctypes.c_double), ("tail", ctypes.c_short * 3))


def test_ctypes_structure(received):
    assert received("Pair", Pair(-5, 2.5), 8) == bytes(Pair(-5, 2.5))
    mixed = Mixed(b"m", 0.1, (ctypes.c_short * 3)(1, -2, 3))
    data = received("Mixed", mixed, 24)
    assert Mixed.from_buffer_copy(data).large == 0.1
    assert list(Mixed.from_buffer_copy(data).tail) == [1, -2, 3]
    assert Mixed.from_buffer_copy(data).small == b"m"


def test_bytes_by_value(received):
    data = bytes(range(100, 124))
    assert received("Pair", data[:8], 8) == data[:8]
    assert received("Odd", data[:5], 5) == data[:5]
    assert received("float4", struct.pack("<4f", 1, 2, 3, 4), 16) == struct.pack("<4f", 1, 2, 3, 4)
    assert received("int3", struct.pack("<3i", 1, -2, 3), 12) == struct.pack("<3i", 1, -2, 3)
    assert received("Wide", struct.pack("<4f", 4, 3, 2, 1), 16) == struct.pack("<4f", 4, 3, 2, 1)
    big = struct.pack("<200i", *range(200))
    assert received("Big", big, 800) == big


def test_numpy_structured_scalar(received):
    numpy = pytest.importorskip("numpy")
    dtype = numpy.dtype([("number", "<i4"), ("real", "<f4")])
    array = numpy.array([(7, 0.5), (-8, 1.5)], dtype=dtype)
    assert received("Pair", array[1], 8) == array[1].tobytes()
    assert received("Pair", array[0:1].reshape(()), 8) == array[0].tobytes()


def test_structures_of_another_size(received):
    numpy = pytest.importorskip("numpy")
    wrong = [
        ("Pair", b"1234567"),
        ("Pair", b"123456789"),
        ("Pair", b""),
        ("Mixed", Pair(1, 1)),
        ("Pair", Mixed()),
        ("Odd", b"123456"),
        ("Pair", numpy.zeros(1, dtype="i4,i4,i4")[0]),
    ]
    for type_name, argument in wrong:
        with pytest.raises(TypeError, match=r"\d"):
            received(type_name, argument, 24)


@pytest.mark.parametrize("argument", [5, 1.5, None, "12345678", [1, 2.0], (1, 2.0), {"number": 1}])
def test_what_is_no_structure(received, argument):
    with pytest.raises(TypeError):
        received("Pair", argument, 8)


# ---- pointers ------------------------------------------------------------------------------------------------------


def test_buffer(device, stream, received):
    buffer = device.allocate(16, stream=stream)
    assert received("int*", buffer, 8) == struct.pack("<Q", int(buffer.handle))
    assert received("int*", buffer[4:8], 8) == struct.pack("<Q", int(buffer.handle) + 4)


def test_none_is_the_null_pointer(received):
    assert received("int*", None, 8) == bytes(8)


def test_int_as_an_address(device, stream, received):
    address = int(device.allocate(16, stream=stream).handle)
    assert received("int*", address, 8) == struct.pack("<Q", address)
    assert received("int*", 0, 8) == bytes(8)
    assert received("int*", 2**64 - 1, 8) == b"\xff" * 8
    with pytest.raises(OverflowError):
        received("int*", 2**64, 8)


def test_pinned_buffer(received):
    buffer = LegacyPinnedMemoryResource().allocate(16)
    assert received("int*", buffer, 8) == struct.pack("<Q", int(buffer.handle))


def test_buffer_of_a_python_subclass(device, stream, received):
    class Named(Buffer):
        pass

    inner = device.allocate(16, stream=stream)
    wrapped = Buffer.from_handle(int(inner.handle), 16, owner=inner)
    assert received("int*", wrapped, 8) == struct.pack("<Q", int(inner.handle))


class CudaArray:
    def __init__(self, buffer, **changes):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (buffer.size // 4,),
            "typestr": "<f4",
            "data": (int(buffer.handle), False),
            "version": 3,
            "strides": None,
            "stream": None,
            **changes,
        }


def test_cuda_array_interface(device, stream, received):
    buffer = device.allocate(64, stream=stream)
    assert received("int*", CudaArray(buffer), 8) == struct.pack("<Q", int(buffer.handle))
    assert received("int*", CudaArray(buffer, version=2), 8) == struct.pack("<Q", int(buffer.handle))
    empty = CudaArray(buffer, shape=(0,), data=(0, False))
    assert received("int*", empty, 8) == bytes(8)


def test_cuda_array_interface_that_is_broken(device, stream, received):
    buffer = device.allocate(64, stream=stream)
    for changes in ({"data": None}, {"data": ("x", False)}, {"data": ()}):
        with pytest.raises((TypeError, ValueError, NotImplementedError)):
            received("int*", CudaArray(buffer, **changes), 8)

    for shape in (None, 4, ("x",), (-4,), (2**70,), (4, -1)):
        with pytest.raises(TypeError, match="shape and strides of __cuda_array_interface__ must be"):
            received("int*", CudaArray(buffer, shape=shape), 8)
    with pytest.raises(ValueError, match="not contiguous"):
        received("int*", CudaArray(buffer, shape=(2**62, 4, 2), strides=(0, 8, 4)), 8)

    for version in (4, -1, "3", None, 2**70):
        with pytest.raises(TypeError, match="'version' of __cuda_array_interface__"):
            received("int*", CudaArray(buffer, version=version), 8)
    for typestr in ("", "f4", "<f", "<f-4", "<f4x", "?f4", "<g4", "<f0", "<f99999999999999999999", "\ud800", 4, None):
        with pytest.raises(TypeError, match="'typestr' of __cuda_array_interface__"):
            received("int*", CudaArray(buffer, typestr=typestr), 8)
    with pytest.raises(ValueError, match="mask"):
        received("int*", CudaArray(buffer, mask=CudaArray(buffer)), 8)
    host = (ctypes.c_char * 64)()
    for address in (ctypes.addressof(host), 0, 4096):
        with pytest.raises(ValueError, match="no memory that the device can use"):
            received("int*", CudaArray(buffer, data=(address, False)), 8)

    class Raises:
        @property
        def __cuda_array_interface__(self):
            raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        received("int*", Raises(), 8)


def test_cuda_array_interface_that_changes_while_it_is_read(device, stream, received):
    buffer = device.allocate(64, stream=stream)

    class Address:
        def __index__(self):
            array.__cuda_array_interface__.clear()
            return int(buffer.handle)

    array = CudaArray(buffer, data=(Address(), False))
    assert received("int*", array, 8) == struct.pack("<Q", int(buffer.handle))
    assert array.__cuda_array_interface__ == {}


def test_what_interrupts_the_reading_of_an_array_is_raised(device, stream, received):
    """Neither an address or extent that raises it, nor a key, turns it into a TypeError."""
    buffer = device.allocate(64, stream=stream)

    class Interrupts(str):
        __slots__ = ()

        def __index__(self):
            raise KeyboardInterrupt

        def __eq__(self, other):
            raise KeyboardInterrupt

        __hash__ = str.__hash__

    number, key = Interrupts(), {Interrupts("mask"): None}
    for changes in ({"data": (number, False)}, {"shape": (number,)}, {"strides": (number,)}, {"stream": number}, key):
        with pytest.raises(KeyboardInterrupt):
            received("int*", CudaArray(buffer, **changes), 8)


class Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, before version 1."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


class DLPackArray:
    """An array of another library, which counts the capsules that were given back."""

    def __init__(self, address, count=16, device=(2, 0), offset=0):
        self.device = device
        self.deleted = 0
        self.shape = (ctypes.c_int64 * 1)(count)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        self.destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.drop)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.tensor = Tensor(address, *device, 1, 2, 32, 1, self.shape, None, offset, None, deleter)

    def delete(self, _):
        self.deleted += 1

    def drop(self, capsule):
        """A capsule that nobody renamed was looked at only: its producer deletes the tensor."""
        is_valid = ctypes.pythonapi.PyCapsule_IsValid
        is_valid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
        self.deleted += is_valid(capsule, b"dltensor")

    def __dlpack__(self, *, stream=None, **_):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), b"dltensor", ctypes.cast(self.destructor, ctypes.c_void_p))

    def __dlpack_device__(self):
        return self.device


def test_dlpack(device, stream, received):
    buffer = device.allocate(64, stream=stream)
    address = int(buffer.handle)
    array = DLPackArray(address)
    assert received("int*", array, 8) == struct.pack("<Q", address)
    assert array.deleted == 1
    array = DLPackArray(address, offset=8)
    assert received("int*", array, 8) == struct.pack("<Q", address + 8)
    assert array.deleted == 1
    assert received("int*", DLPackArray(None, count=0), 8) == bytes(8)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ndim": -1}, "shape is none"),
        ({"shape": None}, "shape is none"),
        ({"shape": None, "strides": (1,)}, "shape is none"),
        ({"shape": (-4,)}, "shape is none"),
        ({"ndim": 3, "shape": (2**62, 4, 2), "strides": (0, 2, 1)}, "not contiguous"),
        ({"ndim": 3, "shape": (4, 2**62, 4), "strides": (0, 4, 1)}, "not contiguous"),
        ({"device_type": 1}, "DLPack device"),
        ({"device_id": 7}, "DLPack device"),
        ({"byte_offset": 2**64 - 1}, "beyond all memory"),
        ({"data": 4096}, "no memory that the device can use"),
        ({"data": None}, "no memory that the device can use"),
    ],
)
def test_dlpack_that_is_broken(device, stream, received, fields, says):
    array = DLPackArray(int(device.allocate(64, stream=stream).handle))
    for name, value in fields.items():
        is_tuple = isinstance(value, tuple)
        setattr(array.tensor, name, (ctypes.c_int64 * len(value))(*value) if is_tuple else value)
    with pytest.raises(ValueError, match=says):
        received("int*", array, 8)
    assert array.deleted == 1


def test_dlpack_of_a_buffer(device, stream, received):
    class Wrapper:
        def __init__(self, buffer):
            self.__dlpack__, self.__dlpack_device__ = buffer.__dlpack__, buffer.__dlpack_device__

    import weakref

    buffer = device.allocate(64, stream=stream)
    assert received("int*", Wrapper(buffer), 8) == struct.pack("<Q", int(buffer.handle))
    stream.sync()
    reference = weakref.ref(buffer)
    del buffer
    gc.collect()
    assert reference() is None


def test_dlpack_of_the_host_is_refused(received):
    numpy = pytest.importorskip("numpy")
    array = DLPackArray(4096, device=(1, 0))
    with pytest.raises((TypeError, ValueError), match=r"(?i)host|cpu|copy"):
        received("int*", array, 8)

    class Host:
        def __init__(self):
            self.array = numpy.zeros(4)

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    with pytest.raises((TypeError, ValueError), match=r"(?i)host|cpu|copy"):
        received("int*", Host(), 8)


def test_host_array_for_a_pointer_is_refused_with_advice(received):
    numpy = pytest.importorskip("numpy")
    import array

    for host in (
        numpy.zeros(4, dtype=numpy.float32),
        numpy.zeros((), dtype=numpy.float64),
        numpy.float64(1.5),
        bytearray(16),
        b"0123456789abcdef",
        memoryview(bytearray(16)),
        array.array("f", [1, 2]),
    ):
        with pytest.raises(TypeError) as caught:
            received("int*", host, 8)
        if getattr(host, "shape", (1,)) != ():
            assert "cop" in str(caught.value), str(caught.value)
    with pytest.raises(TypeError):
        received("int*", (ctypes.c_int * 4)(), 8)


def test_closed_buffer(device, stream, received):
    buffer = device.allocate(16, stream=stream)
    buffer.close()
    with pytest.raises(ClosedError, match="closed"):
        received("int*", buffer, 8)


def test_pointer_refuses(received):
    for wrong in (1.5, "0", [1], (1,), {}, object(), 1j, len):
        with pytest.raises(TypeError):
            received("int*", wrong, 8)
    with pytest.raises(OverflowError):
        received("int*", -(2**63) - 1, 8)


# ---- messages: the kernel, the index and the type ------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(compile):
    names = [f"p{i}" for i in range(63)]
    macros = [
        ("PARAMETERS", ", ".join(f"int {name}" for name in names)),
        ("SUM", "+".join(f"(long long){n}" for n in names)),
    ]
    return compile(PLAIN, define_macro=macros)


REFUSED = [
    ("integers", ["x", 1, 1, 1], 0, TypeError),
    ("integers", [1, 1.5, 1, 1], 1, TypeError),
    ("integers", [1, 1, None, 1], 2, TypeError),
    ("integers", [1, 1, 2**33, 1], 2, OverflowError),
    ("integers", [1, 1, 1, 2**64], 3, OverflowError),
    ("integers", [300, 1, 1, 1], 0, OverflowError),
    ("integers", [1, 1, 1j, 1], 2, TypeError),
    ("integers", [1, 1, b"1234", 1], 2, None),
    ("reals", ["x", 1.0], 0, TypeError),
    ("reals", [1.0, None], 1, TypeError),
    ("reals", [1.0, 1j], 1, TypeError),
    ("reals", [1e300, 1.0], 0, OverflowError),
    ("record", [1], 0, TypeError),
    ("record", [b"1"], 0, TypeError),
]


@pytest.mark.parametrize(("name", "arguments", "index", "error"), REFUSED)
def test_message(device, stream, plain, name, arguments, index, error):
    ran = zeros(device, stream, 4)
    if error is None:  # bytes for a number of the same size: taken as its bits, or refused
        with contextlib.suppress(TypeError):
            launch(stream, ONE, plain.get_kernel(name), *arguments, ran)
        return
    with pytest.raises(error) as caught:
        launch(stream, ONE, plain.get_kernel(name), *arguments, ran)
    text = str(caught.value)
    assert name in text
    assert f"argument {index}" in text, text
    assert download(ran, stream) == bytes(4)  # nothing reached the driver
    launch(stream, ONE, plain.get_kernel("one"), ran)
    assert download(ran, stream) == (1).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("name", "arguments", "wanted", "given"),
    [
        ("one", [], 1, 0),
        ("one", [1, 2], 1, 2),
        ("none", [1], 0, 1),
        ("reals", [1.0], 3, 1),
        ("integers", [1] * 70, 5, 70),
    ],
)
def test_count(stream, plain, name, arguments, wanted, given):
    with pytest.raises(TypeError) as caught:
        launch(stream, ONE, plain.get_kernel(name), *arguments)
    text = str(caught.value)
    assert name in text
    assert str(wanted) in text
    assert str(given) in text


def test_buffer_for_a_number(device, stream, plain):
    ran = zeros(device, stream, 4)
    with pytest.raises(TypeError, match="integers"):
        launch(stream, ONE, plain.get_kernel("integers"), 1, 1, ran, 1, ran)
    with pytest.raises(TypeError, match="reals"):
        launch(stream, ONE, plain.get_kernel("reals"), 1.0, ran, ran)


def test_no_arguments(stream, plain):
    launch(stream, ONE, plain.get_kernel("none"))
    stream.sync()


def test_sixty_four_arguments(device, stream, plain):
    out = zeros(device, stream, 8)
    values = [i * i - 500 for i in range(63)]
    launch(stream, ONE, plain.get_kernel("sum64"), out, *values)
    assert int.from_bytes(download(out, stream), "little", signed=True) == sum(values)


def test_more_than_sixty_four_arguments(device, stream, compile):
    names = [f"p{i}" for i in range(300)]
    source = f"""
    extern "C" __global__ void sum(double *out, {", ".join("double " + name for name in names)})
    {{ *out = {" + ".join(names)}; }}
    """
    out = zeros(device, stream, 8)
    launch(stream, ONE, compile(source).get_kernel("sum"), out, *range(300))
    assert struct.unpack("<d", download(out, stream)) == (sum(range(300)),)
    with pytest.raises(TypeError, match="299"):
        launch(stream, ONE, compile(source).get_kernel("sum"), out, *range(298), "x", 1)


def test_mixed_order_and_alignment(device, stream, compile):
    source = """
    struct Odd { unsigned char bytes[3]; };
    extern "C" __global__ void mixed(char a, double b, short c, Odd d, float e, char f, long long g, double *out)
    { out[0] = a; out[1] = b; out[2] = c; out[3] = d.bytes[2]; out[4] = e; out[5] = f; out[6] = g; }
    """
    out = zeros(device, stream, 56)
    launch(stream, ONE, compile(source).get_kernel("mixed"), -1, 2.5, -300, b"\x01\x02\x03", 0.25, 7, 2**40, out)
    assert struct.unpack("<7d", download(out, stream)) == (-1, 2.5, -300, 3, 0.25, 7, 2.0**40)


def test_arguments_are_read_at_the_launch(device, stream, compile):
    """A scalar object may be changed as soon as launch has returned."""
    kernel = compile('extern "C" __global__ void put(int *out, int value) { *out = value; }').get_kernel("put")
    value = ctypes.c_int(0)
    outs = []
    for i in range(50):
        value.value = i
        outs.append(zeros(device, stream, 4))
        launch(stream, ONE, kernel, outs[-1], value)
    assert [int.from_bytes(download(out, stream), "little") for out in outs] == list(range(50))


def test_references_are_given_back(device, stream, plain):
    import sys

    argument = 987654321
    before = sys.getrefcount(argument)
    ran = zeros(device, stream, 4)
    buffers_before = sys.getrefcount(ran)
    for _ in range(100):
        launch(stream, ONE, plain.get_kernel("integers"), 1, 1, argument, 1, ran)
        with pytest.raises(TypeError):
            launch(stream, ONE, plain.get_kernel("integers"), 1, "x", argument, 1, ran)
    stream.sync()
    assert abs(sys.getrefcount(argument) - before) < 5
    assert abs(sys.getrefcount(ran) - buffers_before) < 5


def test_kernel_loaded_from_ptx_alone_is_checked_too(device, stream, compile):
    module = compile(PLAIN.replace("PARAMETERS", "int a").replace("SUM", "a"), target="ptx")
    ran = zeros(device, stream, 4)
    with pytest.raises(TypeError, match="reals"):
        launch(stream, ONE, module.get_kernel("reals"), "x", 1.0, ran)
    launch(stream, ONE, module.get_kernel("reals"), 1, 1, ran)
    assert download(ran, stream) == (1).to_bytes(4, "little")


def test_data_that_a_kernel_reads_through_a_pointer(device, stream, compile):
    kernel = compile(
        'extern "C" __global__ void add(const float *x, float a, float *y, int n)'
        " { int i = threadIdx.x; if (i < n) y[i] = x[i] + a; }"
    ).get_kernel("add")
    x = upload(device, stream, struct.pack("<32f", *range(32)))
    y = zeros(device, stream, 128)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, x, 0.5, y, 30)
    assert struct.unpack("<32f", download(y, stream)) == (*(i + 0.5 for i in range(30)), 0, 0)


# ---- buffers that a kernel cannot use ------------------------------------------------------------------------------


class HostResource(MemoryResource):
    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def allocate(self, size, *, stream):
        raise NotImplementedError

    def deallocate(self, ptr, size, *, stream):
        pass


def test_host_buffers_are_refused(stream, compile):
    kernel = compile(PLAIN.replace("PARAMETERS", "int a").replace("SUM", "a")).get_kernel("one")
    memory = bytearray(64)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for buffer in (
        Buffer.from_handle(address, 64, mr=HostResource()),
        Buffer.from_handle(address, 64, owner=memory),
        Buffer.from_handle(address, 64, owner=memory)[16:],
    ):
        with pytest.raises(TypeError, match=r"argument 0 .*memory of the host; copy it to the device first"):
            launch(stream, ONE, kernel, buffer)
        buffer.close()
        with pytest.raises(ClosedError, match="argument 0"):
            launch(stream, ONE, kernel, buffer)


def test_foreign_buffers_are_taken(device, stream, compile):
    kernel = compile(PLAIN.replace("PARAMETERS", "int a").replace("SUM", "a")).get_kernel("one")
    memory = zeros(device, stream, 4)
    for _ in range(2):
        launch(stream, ONE, kernel, Buffer.from_handle(memory.handle, 4, owner=memory))
    assert download(memory, stream) == b"\1\0\0\0"


def test_buffers_closed_by_a_later_argument(device, stream, compile):
    kernel = compile(PLAIN.replace("PARAMETERS", "int a").replace("SUM", "a")).get_kernel("sum64")

    class Closing:
        def __index__(self):
            out.close()
            return 5

    out = device.allocate(8, stream=stream)
    with pytest.raises(ClosedError, match=r"argument 0 .*closed while the arguments were read"):
        launch(stream, ONE, kernel, out, Closing())


# ---- what refusals advise ------------------------------------------------------------------------------------------


def test_advice_for_structs(stream, module):
    numpy = pytest.importorskip("numpy")
    fields = [("small", "i1"), ("large", "f8"), ("tail", "i2", 3)]
    mixed, half = module.get_kernel("keep<Mixed>"), module.get_kernel("keep<__half>")
    with pytest.raises(TypeError, match=r"argument 1 .*pass array\[0\], or its bytes: array.tobytes\(\)"):
        launch(stream, ONE, mixed, None, numpy.zeros(1, numpy.dtype(fields, align=True)))
    with pytest.raises(TypeError, match=r"a struct of 15 bytes was given \(numpy: dtype with align=True\)"):
        launch(stream, ONE, mixed, None, numpy.zeros(1, numpy.dtype(fields))[0])
    with pytest.raises(TypeError, match=r"for a half pass numpy.float16\(value\)"):
        launch(stream, ONE, half, None, 1.5)
