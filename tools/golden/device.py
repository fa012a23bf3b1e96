"""Just enough of a CUDA driver to run a form: libcuda.so.1 of a GPU, or any library with the same functions."""

import array
import ctypes

import kernel
from operands import width

CODE = {8: "B", 16: "H", 32: "I", 64: "Q"}


class DriverError(RuntimeError):
    pass


class Device:
    def __init__(self, path="libcuda.so.1"):
        self.library = ctypes.CDLL(path)
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.capability = self.attribute(75) * 10 + self.attribute(76)
        self.room = {}

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            name = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(name))
            raise DriverError(f"{function}: {name.value.decode() if name.value else status}")

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def name(self):
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, self.device)
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return f"{text.value.decode()}, compute capability {self.capability}, driver {version.value}"

    def buffer(self, use, size):
        """Device memory of at least `size` bytes, kept for the next form."""
        address, have = self.room.get(use, (None, 0))
        if have < size:
            address = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            self.room[use] = (address, size)
        return address

    def load(self, ptx):
        handle = ctypes.c_void_p()
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # error log buffer, its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(handle), ptx.encode() + b"\0", 2, options, values)
        except DriverError as error:
            raise DriverError(f"{error}: {log.value.decode(errors='replace').strip()}") from None
        return handle

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def run(self, module, name, form, operand_columns):
        """Runs one form over columns of operand bits; returns the columns of result bits."""
        count = len(operand_columns[0])
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        given = array.array("Q")
        for column in operand_columns:
            given.extend(iter(column))
        results = array.array("Q", bytes(8 * count * len(form.results)))
        source = self.buffer("in", 8 * len(given))
        target = self.buffer("out", 8 * len(results))
        scratch = self.buffer("scratch", 64 * count)
        self.copy_in(source, given)
        self.copy_in(target, results)
        arguments = (source, target, scratch, ctypes.c_uint32(count))
        pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(a) for a in arguments))
        blocks = (count + kernel.THREADS - 1) // kernel.THREADS
        self.call("cuLaunchKernel", function, blocks, 1, 1, kernel.THREADS, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(results.buffer_info()[0]), target, ctypes.c_size_t(8 * len(results))
        )
        return [
            array.array(
                CODE[width(kind)], (value & ((1 << width(kind)) - 1) for value in results[i * count : (i + 1) * count])
            )
            for i, kind in enumerate(form.results)
        ]

    def copy_in(self, address, values):
        self.call(
            "cuMemcpyHtoD_v2", address, ctypes.c_void_p(values.buffer_info()[0]), ctypes.c_size_t(8 * len(values))
        )
