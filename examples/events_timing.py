"""Times on the device, and two streams whose order is made by an event."""

from array import array

from cuda_core import Device, EventOptions, LaunchConfig, Program, launch

SOURCE = """
extern "C" __global__ void produce(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i * i;
}
extern "C" __global__ void consume(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[n - 1 - i] + 1;
}
"""

N = 10_000
device = Device(0)
timed = EventOptions(timing_enabled=True)
config = LaunchConfig(grid=(N + 127) // 128, block=128)
result = array("i", bytes(4 * N))

with device.create_stream() as producer, device.create_stream() as consumer:
    module = Program(SOURCE, "c++").compile("cubin")
    squares = device.allocate(4 * N, stream=producer)
    reversed_ = device.allocate(4 * N, stream=consumer)

    begin = producer.record(options=timed)
    launch(producer, config, module.get_kernel("produce"), squares, N)
    produced = producer.record(options=timed)

    # Streams run side by side: without this the consumer could read squares that are not there yet.
    consumer.wait(produced)
    launch(consumer, config, module.get_kernel("consume"), squares, reversed_, N)
    consumed = consumer.record(options=timed)
    print("done at once?", consumed.is_done)
    reversed_.copy_to(result, stream=consumer)

    consumed.sync()
    print(f"produce       {produced - begin:.3f} ms")
    print(f"both          {consumed - begin:.3f} ms")

assert list(result) == [(N - 1 - i) ** 2 + 1 for i in range(N)]
print("right: the consumer saw all that the producer wrote")
