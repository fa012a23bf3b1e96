"""Event: states, times, waiting, closing."""

import gc
import pickle
import weakref

import pytest
from cuda_core import ClosedError, Event, EventOptions, LaunchConfig, launch

SPIN = """
extern "C" __global__ void spin(int *cell, int rounds)
{
    volatile int *p = cell;
    for (int i = 0; i < rounds; i++) *p = *p + 1;
}
"""


@pytest.fixture(scope="module")
def spin(compile):
    return compile(SPIN).get_kernel("spin")


def test_options():
    assert EventOptions() == EventOptions(timing_enabled=False, blocking_sync=False, ipc_enabled=False)
    with pytest.raises(TypeError, match="timing_enabled"):
        EventOptions(timing_enabled=1)
    with pytest.raises(TypeError):
        EventOptions(enable=True)


@pytest.mark.parametrize("timing", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
def test_attributes(device, timing, blocking):
    event = device.create_event(EventOptions(timing_enabled=timing, blocking_sync=blocking))
    assert event.is_timing_enabled is timing
    assert event.is_blocking_sync is blocking
    assert event.is_ipc_enabled is False
    assert event.device is device
    assert event.context == device.context
    assert int(event.handle) != 0
    assert event.is_closed is False
    assert "Event" in repr(event)
    assert hex(int(event.handle)) in repr(event)


def test_identity(device):
    a, b = device.create_event(), device.create_event()
    assert a == a
    assert a != b
    assert hash(a) != hash(b) or int(a.handle) != int(b.handle)
    assert a != "event"
    assert len({a, b, a}) == 2


def test_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        Event()


def test_event_that_was_not_recorded_is_done(device):
    event = device.create_event()
    assert event.is_done is True
    assert event.sync() is None


def test_done_after_the_work(device, stream, spin):
    cell = device.allocate(4, stream=stream)
    cell.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), spin, cell, 300_000)
    event = stream.record()
    early = event.is_done
    event.sync()
    assert event.is_done is True
    assert early is False


def test_elapsed(device, stream, spin):
    cell = device.allocate(4, stream=stream)
    start = stream.record(options={"timing_enabled": True})
    launch(stream, LaunchConfig(grid=1, block=1), spin, cell, 100_000)
    end = stream.record(options=EventOptions(timing_enabled=True))
    end.sync()
    elapsed = end - start
    assert isinstance(elapsed, float)
    assert 0.001 < elapsed < 60_000
    assert start - end == pytest.approx(-elapsed)
    assert end - end == 0.0


def test_elapsed_names_the_event_without_timing(stream):
    timed = stream.record(options={"timing_enabled": True})
    plain = stream.record()
    stream.sync()
    with pytest.raises(RuntimeError, match="timing"):
        _ = timed - plain
    with pytest.raises(RuntimeError, match="timing"):
        _ = plain - timed


def test_elapsed_of_an_event_not_recorded(device, stream):
    timed = stream.record(options={"timing_enabled": True})
    timed.sync()
    unrecorded = device.create_event({"timing_enabled": True})
    with pytest.raises(RuntimeError, match="record"):
        _ = unrecorded - timed


def test_elapsed_of_an_event_that_is_not_done(device, stream, spin):
    cell = device.allocate(4, stream=stream)
    start = stream.record(options={"timing_enabled": True})
    launch(stream, LaunchConfig(grid=1, block=1), spin, cell, 300_000)
    end = stream.record(options={"timing_enabled": True})
    with pytest.raises(RuntimeError, match=r"done|complete|finish|sync|ready"):
        _ = end - start
    end.sync()
    assert end - start > 0


def test_subtraction_of_other_things(stream):
    event = stream.record()
    with pytest.raises(TypeError):
        _ = event - 5
    with pytest.raises(TypeError):
        _ = 5 - event


def test_event_is_recorded_again(device, stream):
    event = device.create_event({"timing_enabled": True})
    start = stream.record(options={"timing_enabled": True})
    stream.record(event)
    event.sync()
    first = event - start
    stream.record(event)
    event.sync()
    assert event - start >= first


def test_event_outlives_its_stream(device):
    stream = device.create_stream()
    event = stream.record()
    stream.close()
    del stream
    gc.collect()
    event.sync()
    assert event.is_done


def test_close(device):
    event = device.create_event()
    event.close()
    assert event.is_closed
    assert event.close() is None


@pytest.mark.parametrize("name", ["sync", "is_done", "record", "wait", "subtract", "from", "with"])
def test_use_after_close(device, stream, name):
    event = device.create_event({"timing_enabled": True})
    other = stream.record(options={"timing_enabled": True})
    stream.sync()
    event.close()

    def use():
        if name == "sync":
            event.sync()
        elif name == "is_done":
            _ = event.is_done
        elif name == "record":
            stream.record(event)
        elif name == "wait":
            stream.wait(event)
        elif name == "subtract":
            _ = event - other
        elif name == "from":
            _ = other - event
        else:
            with event:
                pass

    with pytest.raises(ClosedError, match="closed"):
        use()


def test_context_manager(device):
    with device.create_event() as event:
        assert event.is_done
    assert event.is_closed


def test_weak_reference_and_pickle(device):
    event = device.create_event()
    reference = weakref.ref(event)
    assert reference() is event
    with pytest.raises(TypeError):
        pickle.dumps(event)
    del event
    gc.collect()
    assert reference() is None
