"""What the targets share: values and objects of the input's choice, and code that does harm when it is asked.

Nothing here is checked for sense: every object is one that a user could pass."""

import gc

from cuda_core import Buffer, Device, LaunchConfig, ObjectCode
from fuzz import choice, take

device = Device(0)
stream = device.create_stream()
code = ObjectCode.from_ptx(b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n")
# Allocated once: the emulated device rests memory that was freed, so that fresh one would look like a leak.
memory = device.allocate(256, stream=stream)
one_thread = LaunchConfig(grid=1, block=1)


class BrokenError(Exception):
    """The target found something."""


def expect(holds, *what):
    if not holds:
        raise BrokenError(*what)


# ---- the world of one input ----


class Interrupt(BaseException):
    """Like KeyboardInterrupt: whatever it interrupts, the caller gets it."""


ERRORS = (AttributeError, TypeError, ValueError, OverflowError, LookupError, BufferError, RuntimeError, StopIteration)


class World:
    """The buffers that an input can use and close, and what was raised through the code under test."""

    def __init__(self):
        self.buffers = []
        self.containers = []
        self.urgent = []
        self.depth = 0

    def buffer(self):
        """One of the input's buffers, open or closed, or a fresh one."""
        which = choice(len(self.buffers) + 1)
        if which < len(self.buffers):
            return self.buffers[which]
        start = choice(128)
        made = memory[start:] if choice(2) else Buffer.from_handle(int(memory.handle) + start, 64, owner=object())
        self.buffers.append(made)
        return made

    def close_some(self):
        if self.buffers:
            self.buffers[choice(len(self.buffers))].close()

    def empty_containers(self):
        for container in self.containers:
            container.clear()

    def raise_something(self):
        which = choice(len(ERRORS) + 2)
        if which < len(ERRORS):
            raise ERRORS[which]("on purpose")
        error = (Interrupt, MemoryError)[which - len(ERRORS)]("on purpose")
        self.urgent.append(type(error))
        raise error

    def harm(self, can_raise=True):
        """What hostile code does before it answers; mostly nothing."""
        what = choice(16)
        if what == 1:
            self.close_some()
        elif what == 2:
            self.empty_containers()
        elif what == 3:
            gc.collect()
        elif what >= 13 and can_raise:
            self.raise_something()

    def close(self):
        for buffer in self.buffers:
            buffer.close()
        stream.sync()


world = World()


def begin():
    """A new world, for a new input."""
    global world  # noqa: PLW0603 - hostile objects are asked by code that cannot pass it on
    world = World()
    return world


def the_world():
    return world


# ---- values ----

EDGES = (7, 8, 15, 16, 24, 31, 32, 33, 53, 63, 64, 65, 127, 128, 1023, 1024, 2000)


def integer():
    kind = choice(6)
    if kind == 0:
        return choice(256)
    if kind == 1:
        return -choice(256)
    if kind == 2:
        edge = 2 ** EDGES[choice(len(EDGES))] + choice(3) - 1
        return -edge if choice(2) else edge
    return int.from_bytes(take((1, 4, 8, 9)[choice(4)]), "little", signed=kind == 3)


FLOATS = (0.0, -0.0, 1.5, 65519.99, 65520.0, 3.4028235e38, 3.4028235677973366e38, 1e39, -1e300, 5e-324, 1e-45, 6e-8)
FLOATS += (float("inf"), float("-inf"), float("nan"), 2.0**-24, 2.0**-25, -(2.0**-150))


def real():
    which = choice(len(FLOATS) + 1)
    if which < len(FLOATS):
        return FLOATS[which]
    import struct

    return struct.unpack("<d", take(8).ljust(8, b"\0"))[0]


def text():
    return take(choice(16)).decode("utf-8", ("surrogateescape", "replace")[choice(2)])


def plain(depth=2):
    """A value of any builtin type, or of a class that harms."""
    kind = choice(16 if depth else 11)
    if kind < 4:
        return (None, True, False, ...)[kind]
    if kind == 4:
        return integer()
    if kind == 5:
        return real()
    if kind == 6:
        return text()
    if kind == 7:
        return take(choice(64))
    if kind == 8:
        return complex(real(), real())
    if kind == 9:
        return (int, Buffer, Number, object())[choice(4)]
    if kind == 10:
        return Number()
    if kind == 11:
        return tuple(plain(depth - 1) for _ in range(choice(5)))
    if kind == 12:
        return noted([plain(depth - 1) for _ in range(choice(5))])
    if kind == 13:
        return noted({key(): plain(depth - 1) for _ in range(choice(4))})
    if kind == 14:
        return {key() for _ in range(choice(4))}
    return world.buffer()


def noted(container):
    """Hostile code may empty it."""
    world.containers.append(container)
    return container


def key():
    value = plain(0)
    try:
        hash(value)
    except BaseException:
        return "key"
    return value


# ---- objects that harm ----


class Number:
    """Asked for a number, it harms first."""

    def __index__(self):
        world.harm()
        return plain(0)

    __int__ = __index__

    def __float__(self):
        world.harm()
        return plain(0)

    __complex__ = __float__
    __bool__ = __index__

    def __repr__(self):
        world.harm()
        return text()


class Key(str):
    """Equal to the name that is looked for, as far as its hash goes."""

    __slots__ = ()

    def __hash__(self):
        return str.__hash__(self)

    def __eq__(self, other):
        world.harm()
        return bool(choice(2))


# ---- the end of a call ----

ALLOWED = (TypeError, ValueError, OverflowError, MemoryError, BufferError, *ERRORS, Interrupt)


def outcome(function, *arguments, **keywords):
    """(result, None) or (None, exception) of a call. What may not be raised is a finding, and so is an urgent
    exception that somebody swallowed."""
    try:
        result = function(*arguments, **keywords), None
    except BrokenError:
        raise
    except BaseException as error:
        expect(isinstance(error, ALLOWED) and not isinstance(error, SystemError), "unexpected", repr(error))
        result = None, error.with_traceback(None)
    if world.urgent:
        expect(result[1] is not None and type(result[1]) in world.urgent, "lost", world.urgent, result)
        world.urgent.clear()
    return result
