"""A device's default stream is that device's, whatever is current; the module's go with the current device."""

from test_devices import run


def test_default_stream_of_each_device():
    run(
        """
print(zero.default_stream.device.device_id, one.default_stream.device.device_id, LEGACY_DEFAULT_STREAM.device.device_id)
with one:
    print(zero.default_stream.device.device_id, LEGACY_DEFAULT_STREAM.device.device_id)
print(Device().device_id)
""",
        "0 1 0 0 1 0",
    )


def test_default_streams_of_two_devices_differ():
    run(
        """
print(zero.default_stream == one.default_stream, zero.default_stream == LEGACY_DEFAULT_STREAM)
print(len({zero.default_stream, one.default_stream}), hash(zero.default_stream) == hash(LEGACY_DEFAULT_STREAM))
""",
        "False True 2 True",
    )


def test_work_in_the_default_stream_of_another_device():
    run(
        """
buffer = one.allocate(4, stream=None)
buffer.fill(b"abcd", stream=one.default_stream)
print(read(buffer, one.default_stream) == int.from_bytes(b"abcd", "little"), Device().device_id)
LEGACY_DEFAULT_STREAM.close()
one.default_stream.close()
print(one.default_stream.is_closed, LEGACY_DEFAULT_STREAM.is_closed)
""",
        "True 0 False False",
    )


def test_dlpack_is_ordered_with_the_consumers_stream():
    """The consumer's stream waits for the producer's: the copy sees what the delayed kernel wrote."""
    run(
        """
SLOW = '''extern "C" __global__ void slow(int *p, int n) {
    volatile int turns = 0;
    for (int i = 0; i < n; i++) turns = turns + 1;
    *p = 77;
}'''
producer, consumer = one.create_stream(), one.create_stream()
buffer = one.allocate(4, stream=producer)
buffer.fill(0, stream=producer)
launch(producer, ONE, Program(SLOW, "c++").compile("cubin").get_kernel("slow"), buffer, 200000)
capsule = buffer.__dlpack__(stream=consumer.handle)
view = Buffer.from_handle(buffer.handle, 4, owner=capsule)
print(read(view, consumer), buffer.__dlpack_device__())
""",
        "77 (2, 1)",
    )
