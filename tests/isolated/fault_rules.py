"""The faults of the sweep (fault_sweep.py): how each is made to happen, and what is right when it does."""

import bisect
import collections
import ctypes
import functools
import os
import re
import subprocess
import sys
import traceback

from cuda_core import CUDAError, InvalidValueError, NotSupportedError, OutOfMemoryError, _core

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
PRELOADED = os.path.join(ROOT, "build", TAG, "tests", "isolated", "libfailing_allocations.so")

# ---- what is right -----------------------------------------------------------------------------------------------

STICKY = 700  # CUDA_ERROR_ILLEGAL_ADDRESS: the context is lost with it
LAUNCH_FAILED = 719
PLAIN = 800  # CUDA_ERROR_NOT_PERMITTED: means nothing in particular
CODES = {PLAIN: CUDAError, 1: InvalidValueError, 2: OutOfMemoryError, 801: NotSupportedError, STICKY: CUDAError}

# A call that should free something and fails without doing it leaves that alive: nobody can free it then.
RELEASES = {
    "cuStreamDestroy": ("streams",),
    "cuEventDestroy": ("events",),
    "cuMemPoolDestroy": ("pools",),
    "cuLibraryUnload": ("libraries", "modules"),  # the library's module in a context goes when it does
    "cuMemFree": ("device",),
    "cuMemFreeAsync": ("device",),
    "cuMemFreeHost": ("host",),
    "cuMemRelease": ("physical",),
    "cuMemAddressFree": ("reservations",),
}

BestEffort = collections.namedtuple("BestEffort", "call functions codes why scenarios", defaults=(None,))
ANY = None
# Where a buffer meets a second stream, whose order need not be queued: nothing else in these makes or records events.
TWO_STREAMS = {"buffers", "streams_of_others"}

# The calls whose failure may be told to nobody: each with the functions of core/ that may make it so (those that a
# compiler may have put one into the other are named together), the codes that are meant, and why that is right.
BEST_EFFORT = [
    *(
        BestEffort(name, ANY, ANY, "what is let go of has nobody to tell; its context tells the next call")
        for name in RELEASES
    ),
    BestEffort("cuMemUnmap", ANY, ANY, "is tried once more, so that one failure changes nothing"),
    BestEffort(
        "cuMemAddressReserve",
        {"grow_in_place", "grow_lock_held", "cc_buffer_grow_virtual"},
        ANY,
        "memory that cannot grow where it is goes elsewhere",
    ),
    BestEffort(
        "cuCtxSynchronize",
        {"wait_for_device", "wait_for_users", "release_range"},
        ANY,
        "is tried once more before memory is unmapped; the context tells the next call",
    ),
    BestEffort("cuCtxGetCurrent", ANY, ANY, "is asked once more, and that answer counts"),
    BestEffort(
        "cuCtxSetCurrent",
        {"cc__leave_other", "cc__enter_to_release", "set_current"},
        ANY,
        "is tried once more, so that one failure changes nothing",
    ),
    BestEffort(
        "cuCtxSetCurrent",
        {"cc__enter_other"},
        ANY,
        "where waiting for other streams, or in a way that can be broken off, was only the first of two ways",
    ),
    BestEffort(
        "cuStreamQuery",
        {"cc_stream_query"},
        ANY,
        "of Stream.sync, whose wait says what is wrong; of Stream.is_done it is told: test_fault_plan.py",
    ),
    BestEffort(
        "cuEventQuery",
        {"cc_event_query"},
        ANY,
        "of Event.sync, whose wait says what is wrong; of Event.is_done it is told: test_fault_plan.py",
    ),
    *(
        BestEffort(
            name, {function}, ANY, "where the order of two streams cannot be queued the host waits instead", TWO_STREAMS
        )
        for name, function in (
            ("cuEventCreate", "cc_event_create"),
            ("cuEventRecord", "cc_event_record"),
            ("cuStreamWaitEvent", "cc_stream_wait_event"),
        )
    ),
    BestEffort(
        "cuCtxGetId",
        {
            "id_of",
            "cc__context_bind",
            "find_registered",
            "find_foreign",
            "cc__context_find",
            "cc_device_primary_context",
            "retain_primary",
        },
        ANY,
        "a context is then told from others by its address alone",
    ),
    BestEffort(
        "cuGetErrorName",
        {"cc__driver_error_name", "cc__fail_driver"},
        ANY,
        "the error is reported all the same, by core's own name for it",
    ),
    BestEffort(
        "cuGetErrorString",
        {"cc__driver_error_text", "cc__fail_driver"},
        ANY,
        "the error is reported all the same, without the driver's words",
    ),
    BestEffort(
        "cuMemPoolGetAttribute",
        {"explain_out_of_memory", "fail_allocation", "cc_buffer_allocate"},
        ANY,
        "the out-of-memory error is reported all the same, without the pool's figures",
    ),
    BestEffort(
        "cuMemGetInfo",
        {
            "explain_out_of_memory",
            "fail_allocation",
            "cc_buffer_allocate",
            "allocate_now",
            "cc_buffer_allocate_pinned",
            "cc_buffer_allocate_device",
        },
        ANY,
        "the out-of-memory error is reported all the same, without the device's figures",
    ),
    BestEffort(
        "cuEventQuery",
        {"explain_elapsed", "cc_event_elapsed"},
        ANY,
        "the error is reported all the same, without saying which event is not done",
    ),
    BestEffort(
        "cuStreamQuery",
        {"cc_host_copy_wait", "is_ready", "poll_until", "cc__stream_poll", "cc_stream_wait"},
        ANY,
        "asks only whether to wait here, where signals are seen; the copy or the driver's wait that follows says "
        "what is wrong with the work",
    ),
    BestEffort(
        "cuEventQuery",
        {"is_ready", "poll_until", "poll_context", "cc_event_wait", "cc_device_wait"},
        ANY,
        "asks only whether to wait here, where signals are seen; the driver's wait that follows says what is wrong",
    ),
    BestEffort(
        "cuEventCreate",
        {"mark_context", "poll_context", "cc_device_wait"},
        ANY,
        "Device.sync then waits in the driver, as with a driver before 12.5",
    ),
    BestEffort(
        "cuCtxRecordEvent",
        {"mark_context", "poll_context", "cc_device_wait"},
        ANY,
        "Device.sync then waits in the driver, as with a driver before 12.5",
    ),
    BestEffort(
        "cuEventCreate",
        {"mark", "cc__context_keep"},
        ANY,
        "the stream is waited for instead, so that the copy is done with its memory",
    ),
    BestEffort(
        "cuEventRecord",
        {"mark", "cc__context_keep"},
        ANY,
        "the stream is waited for instead, so that the copy is done with its memory",
    ),
    BestEffort(
        "cuEventQuery",
        {"is_finished", "take", "cc_context_collect"},
        ANY,
        "memory of a copy stays kept, and is asked of again later",
    ),
    BestEffort(
        "cuDeviceGetAttribute",
        {"cc_device_attribute"},
        ANY,
        "only from is_done_on_return, as the next",
    ),
    BestEffort(
        "cuPointerGetAttributes",
        {
            "ask_pointer",
            "is_done_on_return",
            "cc_host_copy_wait",
            "copy_and_keep",
            "cc_copy_from_host",
            "cc_copy_to_host",
        },
        ANY,
        "memory of a copy is kept until an event behind it, which is right for every kind of memory",
    ),
    BestEffort(
        "cuKernelGetParamInfo",
        ANY,
        {1},
        "code 1 is how the driver says that a kernel has no more parameters",
    ),
    BestEffort(
        "cuGetProcAddress",
        ANY,
        {1, 801},
        "these codes say that the driver lacks an entry point, which may be optional",
    ),
]

# Driver calls of core/driver.def that no scenario makes; each is swept in C or needs what the emulated device lacks.
NOT_REACHED = {
    **dict.fromkeys(("cuCtxGetDevice", "cuDevicePrimaryCtxGetState"), "for contexts that others made"),
    **dict.fromkeys(("cuDeviceCanAccessPeer", "cuMemPoolGetAccess"), "for a second device"),
    **dict.fromkeys(("cuMemAlloc", "cuMemFree"), "for devices without pools"),
    **dict.fromkeys(("cuOccupancyMaxActiveClusters", "cuOccupancyMaxPotentialClusterSize"), "for clusters"),
    **dict.fromkeys(("cuDeviceTotalMem", "cuMemPoolTrimTo"), "no scenario yet"),
}

# The same for allocations of core/ and bindings/.
BEST_EFFORT_ALLOCATIONS = {
    "cc__context_keep": "the stream is waited for instead, so that the copy is done with its memory",
    **dict.fromkeys(
        ("cc_event_create", "move_to", "remember_lock_held", "remember", "cc_buffer_used_on"),
        "where the order of two streams cannot be remembered or queued the host waits instead",
    ),
    "cc__library_explain": "the error is reported all the same, its log as a part of the text only",
    **dict.fromkeys(
        ("read_log", "cc_compile", "fail_compilation"), "the log is an addition and never the reason for a failure"
    ),
}


def is_best_effort(name, function, code, scenario):
    return any(
        name == each.call
        and (each.functions is ANY or function in each.functions)
        and (each.codes is ANY or code in each.codes)
        and (each.scenarios is None or scenario in each.scenarios)
        for each in BEST_EFFORT
    )


# ---- the emulator and the allocations ----------------------------------------------------------------------------

KINDS = ["contexts", "streams", "events", "pools", "libraries", "modules", "device", "host", "registrations", "managed"]
KINDS += ["physical", "reservations", "mappings"]
emulator = ctypes.CDLL(os.path.join(os.path.dirname(_core.__file__), "libcuda_core_emulator.so"))
emulator.cuEmulatorCallName.restype = ctypes.c_char_p
emulator.cuEmulatorCallName.argtypes = (ctypes.c_uint64,)
emulator.cuEmulatorCallPlace.restype = ctypes.c_void_p
emulator.cuEmulatorCallPlace.argtypes = (ctypes.c_uint64,)
preloaded = ctypes.PyDLL(PRELOADED)
preloaded.fail_library_allocation.argtypes = (ctypes.c_void_p, ctypes.c_ulong)
preloaded.end_library_allocations.restype = ctypes.c_ulong
preloaded.failed_allocation_place.restype = ctypes.c_void_p
preloaded.fail_python_allocation.argtypes = (ctypes.c_ulong,)
preloaded.end_python_allocations.restype = ctypes.c_ulong
core_address = ctypes.cast(ctypes.CDLL(_core.__file__).PyInit__core, ctypes.c_void_p).value


def live():
    counts = (ctypes.c_uint64 * len(KINDS))()
    assert emulator.cuEmulatorLiveObjects(counts, ctypes.c_size_t(ctypes.sizeof(counts))) == 0
    return dict(zip(KINDS, counts, strict=True))


def set_plan(text):
    assert emulator.cuEmulatorSetFaultPlan(None if text is None else text.encode()) == 0


def fault_counts():
    counts = (ctypes.c_uint64 * 4)()
    assert emulator.cuEmulatorFaultCounts(counts, ctypes.c_size_t(ctypes.sizeof(counts))) == 0
    return dict(zip(("calls", "allocations", "failed_calls", "failed_allocations"), counts, strict=True))


def current_context():
    """The thread's own, None where there is none or no driver."""
    context = ctypes.c_void_p()
    return context.value if emulator.cuCtxGetCurrent(ctypes.byref(context)) == 0 else None


@functools.cache
def core_functions():
    """Addresses and names of the extension's functions, in order."""
    lines = subprocess.run(["nm", "--defined-only", _core.__file__], capture_output=True, text=True, check=True).stdout
    found = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines.splitlines() if line[17] in "tT")
    away = core_address - {name: address for address, name in found}["PyInit__core"]
    return [address + away for address, _ in found], [re.sub(r"\..*", "", name) for _, name in found]


def function_at(address):
    """The function of the extension that holds the address, without what the compiler calls its parts."""
    addresses, names = core_functions()
    index = bisect.bisect_right(addresses, address or 0) - 1
    return names[index] if index >= 0 else None


def call_name(number):
    """Without the version: as cuda_core names it."""
    name = emulator.cuEmulatorCallName(number)
    return None if name is None else re.sub(r"(_v\d)?(_pt[sd][sz])?$", "", name.decode())


def call_place(number):
    return function_at(emulator.cuEmulatorCallPlace(number))


# ---- faults ------------------------------------------------------------------------------------------------------


def describe(error):
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"{text} [code {getattr(error, 'code', None)}, function {getattr(error, 'function', None)}]"


class CallFault(collections.namedtuple("CallFault", "number code how")):
    """how: "" for a call that fails and does nothing, "late" for one that does its work first, "onwards" where all that
    follow fail, too."""

    def begin(self):
        set_plan(f"call={self.number},code={self.code}" + (f",{self.how}" if self.how else ""))

    def end(self):
        set_plan(None)
        counts = fault_counts()
        last = counts["calls"] if self.how == "onwards" else min(self.number, counts["calls"])
        self.failed = [(call_name(number), call_place(number)) for number in range(self.number, last + 1)]
        return counts["failed_calls"]

    def may_lose(self):
        """The context is lost by it."""
        return self.code == STICKY

    def may_leave(self):
        """The kinds of objects of which it may leave one alive; None: of all, any number."""
        if self.how == "onwards":
            return None
        return () if self.how == "late" else RELEASES.get(self.failed[0][0], ()) if self.failed else ()

    def is_told_by(self, error):
        if self.code == STICKY:  # maybe by a later call in the context that is lost
            return type(error) is CUDAError and error.code == STICKY
        if type(error) is CODES[self.code] and error.code == self.code:
            return any(error.function == name for name, _ in self.failed)
        if self.code == 1 and all(name == "cuDeviceGetAttribute" for name, _ in self.failed):
            return type(error).__name__ == "WrongResultError"  # an attribute that the driver says it lacks is 0
        absent = self.code in (1, 801) and any(name == "cuGetProcAddress" for name, _ in self.failed)
        return absent and type(error) is NotSupportedError and "needs driver" in str(error)

    def judge(self, told, scenario):
        """What is wrong with the errors that came out of it."""
        strange = [error for error in told if not self.is_told_by(error)]
        swallowed = [each for each in self.failed if not is_best_effort(*each, self.code, scenario)]
        if self.how == "onwards":  # the last resort of cc__leave_other, which a compiler lets its caller call
            swallowed = [each for each in swallowed if each[0] != "cuCtxSetCurrent"]
        if strange:
            return f"{self.failed[0][0]} failed by {self.code}, which was told as {describe(strange[0])}"
        if swallowed and not told:
            return f"{swallowed[0][0]}, called by {swallowed[0][1]}, failed and nobody was told"
        return None

    def __str__(self):
        return f"call {self.number}, code {self.code}{', ' + self.how if self.how else ''}"


class AllocationFault:
    how = ""

    def __init__(self, number):
        self.number = number

    def may_leave(self):
        return ()

    def may_be_silent(self):
        return True

    def may_lose(self):
        return False

    def is_told_by(self, error):
        return isinstance(error, MemoryError)

    def judge(self, told, scenario):
        strange = [error for error in told if not self.is_told_by(error)]
        if strange:
            return f"told as {describe(strange[0])}"
        return None if told or self.may_be_silent() else f"the allocation in {self.place} failed and nobody was told"

    def __str__(self):
        return f"{self.kind} allocation {self.number}"


class PythonAllocationFault(AllocationFault):
    kind = "Python"

    def begin(self):
        self.missed = False
        try:
            preloaded.fail_python_allocation(self.number)
        except MemoryError:  # the call's own
            self.missed = True

    def end(self):
        try:
            count = preloaded.end_python_allocations()
        except MemoryError:
            self.missed = True
            count = preloaded.end_python_allocations()
        return not self.missed and count >= self.number


class CoreAllocationFault(AllocationFault):
    kind = "core"

    def begin(self):
        preloaded.fail_library_allocation(core_address, self.number)

    def end(self):
        happened = preloaded.end_library_allocations() >= self.number
        self.place = function_at(preloaded.failed_allocation_place())
        return happened

    def may_be_silent(self):
        return self.place in BEST_EFFORT_ALLOCATIONS


class EmulatorAllocationFault(AllocationFault):
    kind = "emulator"
    is_lost = False

    def begin(self):
        set_plan(f"allocation={self.number}")

    def end(self):
        set_plan(None)
        return fault_counts()["failed_allocations"]

    def may_lose(self):
        return self.is_lost

    def is_told_by(self, error):
        """A kernel that has begun and finds no memory fails as one that faults: what it has done stays done."""
        failed = type(error) is CUDAError and error.code == LAUNCH_FAILED
        self.is_lost = failed and re.search("no (host|device) memory", str(error)) is not None
        return self.is_lost or super().is_told_by(error)
