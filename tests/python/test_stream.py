"""Stream: making, wrapping, ordering, waiting, closing."""

import gc
import time
import weakref

import pytest
from cuda_core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    ClosedError,
    Context,
    Event,
    LaunchConfig,
    Stream,
    StreamOptions,
    launch,
)
from support import download, upload, zeros

SLOW = """
extern "C" __global__ void slow(int *cell, int rounds)
{
    // Each round depends on memory, so that no compiler can shorten it.
    volatile int *p = cell + 1;
    for (int i = 0; i < rounds; i++) *p = *p + 1;
    cell[0] = cell[1];
}
extern "C" __global__ void twice(int *to, const int *from) { *to = 2 * *from; }
"""
ROUNDS = 30000


@pytest.fixture(scope="module")
def slow(compile):
    return compile(SLOW).get_kernel("slow")


@pytest.fixture(scope="module")
def twice(compile):
    return compile(SLOW).get_kernel("twice")


ONE = LaunchConfig(grid=1, block=1)


def as_int(data):
    return int.from_bytes(data[:4], "little", signed=True)


def test_attributes(device, stream):
    assert int(stream.handle) != 0
    assert stream.__cuda_stream__() == (0, int(stream.handle))
    assert stream.device is device
    assert isinstance(stream.context, Context)
    assert stream.context == device.context
    assert stream.is_nonblocking is True
    assert isinstance(stream.priority, int)
    assert stream.is_closed is False


def test_handle_can_be_read_only(stream):
    with pytest.raises(AttributeError):
        stream.handle = 0


def test_options(device):
    with device.create_stream(options=StreamOptions(nonblocking=False)) as stream:
        assert stream.is_nonblocking is False
    with device.create_stream(options=StreamOptions(priority=-1)) as stream:
        assert stream.priority == -1
    with device.create_stream(options={"priority": 0}) as stream:
        assert stream.priority == 0
    assert StreamOptions() == StreamOptions(nonblocking=True, priority=None)


def test_priority_out_of_range_names_the_range(device):
    with pytest.raises(ValueError, match=r"priorit.*-?\d"):
        device.create_stream(options={"priority": -1000})
    with pytest.raises(ValueError, match="priorit"):
        device.create_stream(options={"priority": 1000})


def test_options_of_wrong_types():
    with pytest.raises(TypeError, match="nonblocking"):
        StreamOptions(nonblocking="yes")
    with pytest.raises(TypeError, match="priority"):
        StreamOptions(priority="high")


def test_cannot_be_made_by_hand():
    with pytest.raises((TypeError, RuntimeError)):
        Stream()


def test_equality_and_hash(device, stream):
    same = Stream.from_handle(int(stream.handle))
    assert same == stream
    assert hash(same) == hash(stream)
    assert len({same, stream}) == 1
    with device.create_stream() as other:
        assert other != stream
    assert stream != 5
    assert (stream == "stream") is False


def test_from_handle(stream):
    assert Stream.from_handle(handle=int(stream.handle)).__cuda_stream__() == stream.__cuda_stream__()
    wrapped = Stream.from_handle(int(stream.handle))
    wrapped.close()
    assert wrapped.is_closed
    assert stream.sync() is None
    with pytest.raises(TypeError):
        Stream.from_handle("0")
    with pytest.raises((ValueError, OverflowError)):
        Stream.from_handle(-1)
    with pytest.raises((ValueError, OverflowError)):
        Stream.from_handle(2**64)


def test_default_streams(device):
    assert int(LEGACY_DEFAULT_STREAM.handle) == 1
    assert int(PER_THREAD_DEFAULT_STREAM.handle) == 2
    assert LEGACY_DEFAULT_STREAM != PER_THREAD_DEFAULT_STREAM
    for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, device.default_stream):
        buffer = upload(device, stream, b"12345678")
        assert download(buffer, stream) == b"12345678"
        assert stream.is_closed is False


def test_repr(stream):
    assert "Stream" in repr(stream)
    assert hex(int(stream.handle)) in repr(stream)


def test_weak_reference(device):
    stream = device.create_stream()
    reference = weakref.ref(stream)
    assert reference() is stream
    del stream
    gc.collect()
    assert reference() is None


def test_work_is_asynchronous_and_sync_waits(device, stream, slow):
    cell = zeros(device, stream, 8)
    launch(stream, ONE, slow, cell, ROUNDS)
    assert as_int(download(cell, stream)) == ROUNDS


def test_launch_returns_before_the_work_is_done(device, stream, slow):
    cell = zeros(device, stream, 8)
    stream.sync()
    launch(stream, ONE, slow, cell, 10)  # loads the module
    stream.sync()
    launch(stream, ONE, slow, cell, 10 * ROUNDS)
    event = stream.record()
    done_at_once = event.is_done
    event.sync()
    assert event.is_done
    assert not done_at_once


def test_order_inside_a_stream(device, stream, slow, twice):
    cell, result = zeros(device, stream, 8), zeros(device, stream, 4)
    launch(stream, ONE, slow, cell, ROUNDS)
    launch(stream, ONE, twice, result, cell)
    assert as_int(download(result, stream)) == 2 * ROUNDS


@pytest.mark.parametrize("how", ["event", "stream", "foreign"])
def test_wait(device, stream, slow, twice, how):
    with device.create_stream() as other:
        cell, result = zeros(device, stream, 8), zeros(device, other, 4)
        other.sync()
        launch(stream, ONE, slow, cell, ROUNDS)
        if how == "event":
            other.wait(stream.record())
        elif how == "stream":
            other.wait(stream)
        else:

            class Foreign:
                def __cuda_stream__(self):
                    return (0, int(stream.handle))

            other.wait(Foreign())
        launch(other, ONE, twice, result, cell)
        assert as_int(download(result, other)) == 2 * ROUNDS


def test_wait_refuses(stream):
    for wrong in (None, 5, "event"):
        with pytest.raises(TypeError):
            stream.wait(wrong)


def test_record(device, stream):
    event = stream.record()
    assert isinstance(event, Event)
    assert event.is_timing_enabled is False
    assert stream.record(options={"timing_enabled": True}).is_timing_enabled is True
    mine = device.create_event()
    assert stream.record(mine) is mine
    assert stream.record(event=mine) is mine
    with pytest.raises(TypeError):
        stream.record("event")


def test_blocking_stream_is_ordered_with_the_legacy_stream(device, slow, twice):
    with device.create_stream(options={"nonblocking": False}) as stream:
        cell, result = zeros(device, stream, 8), zeros(device, stream, 4)
        launch(stream, ONE, slow, cell, ROUNDS)
        launch(LEGACY_DEFAULT_STREAM, ONE, twice, result, cell)
        assert as_int(download(result, stream)) == 2 * ROUNDS


def test_close(device):
    stream = device.create_stream()
    handle = int(stream.handle)
    before = hash(stream)
    stream.close()
    assert stream.is_closed
    assert stream.close() is None
    assert hash(stream) == before
    assert handle
    assert "Stream" in repr(stream)


def use(name, device, stream, closed):
    if name == "sync":
        closed.sync()
    elif name == "record":
        closed.record()
    elif name == "wait":
        closed.wait(stream)
    elif name == "waited for":
        stream.wait(closed)
    elif name == "allocate":
        device.allocate(16, stream=closed)
    elif name == "device":
        _ = closed.device
    elif name == "cuda_stream":
        closed.__cuda_stream__()
    elif name == "with":
        with closed:
            pass
    elif name == "priority":
        _ = closed.priority


@pytest.mark.parametrize(
    "name", ["sync", "record", "wait", "waited for", "allocate", "device", "cuda_stream", "with", "priority"]
)
def test_use_after_close(device, stream, name):
    closed = device.create_stream()
    closed.close()
    with pytest.raises(ClosedError) as caught:
        use(name, device, stream, closed)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)
    assert "closed" in str(caught.value)


def test_closing_leaves_queued_work_running(device, stream, slow):
    other = device.create_stream()
    cell = zeros(device, other, 8)
    launch(other, ONE, slow, cell, ROUNDS)
    event = other.record()
    other.close()
    stream.wait(event)
    assert as_int(download(cell, stream)) == ROUNDS


def test_leaving_with_waits(device, slow):
    result = bytearray(8)
    with device.create_stream() as stream:
        cell = zeros(device, stream, 8)
        launch(stream, ONE, slow, cell, ROUNDS)
        cell.copy_to(result, stream=stream)
    assert as_int(result) == ROUNDS
    assert stream.is_closed


def test_leaving_with_an_exception_closes_and_keeps_it(device):
    with pytest.raises(ZeroDivisionError), device.create_stream() as stream:
        _ = 1 / 0
    assert stream.is_closed


def test_sync_lets_other_threads_run(device, stream, slow):
    import threading

    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    cell = zeros(device, stream, 8)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        launch(stream, ONE, slow, cell, 10 * ROUNDS)
        begin = time.monotonic()
        stream.sync()
        end = time.monotonic()
    finally:
        stop.set()
        thread.join()
    # A sync that kept the GIL would leave no tick between its two ends.
    if end - begin > 0.02:
        assert any(begin < at < end for at in ticks)
    assert as_int(download(cell, stream)) == 10 * ROUNDS


def test_pickling_is_refused(stream):
    import pickle

    with pytest.raises(TypeError):
        pickle.dumps(stream)


def test_wait_names_what_it_takes(stream):
    for wrong in (5, None):
        with pytest.raises(TypeError, match="must be an Event, a Stream or an object with __cuda_stream__"):
            stream.wait(wrong)


def test_unknown_options_list_the_known(device):
    with pytest.raises(TypeError, match="'color'; there are: nonblocking, priority"):
        device.create_stream(options={"color": 1})
