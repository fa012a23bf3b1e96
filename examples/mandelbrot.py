"""The Mandelbrot set in the terminal: a grid of two dimensions, and threads that take different numbers of rounds."""

from array import array

from cuda_core import Device, LaunchConfig, Program, launch

SOURCE = """
extern "C" __global__ void mandelbrot(int *out, int width, int height, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = -2.2f + 3.2f * px / width, cy = -1.2f + 2.4f * py / height, x = 0, y = 0;
    int rounds = 0;
    while (rounds < limit && x * x + y * y < 4) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        rounds++;
    }
    out[py * width + px] = rounds;
}
"""

WIDTH, HEIGHT, LIMIT = 100, 36, 200
SHADES = " .:-=+*#%@"

with Device(0).create_stream() as stream:
    device = stream.device
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("mandelbrot")
    rounds = array("i", bytes(4 * WIDTH * HEIGHT))
    buffer = device.allocate(4 * len(rounds), stream=stream)
    grid = ((WIDTH + 31) // 32, (HEIGHT + 7) // 8)
    launch(stream, LaunchConfig(grid=grid, block=(32, 8)), kernel, buffer, WIDTH, HEIGHT, LIMIT)
    buffer.copy_to(rounds, stream=stream)

for row in range(HEIGHT):
    line = rounds[row * WIDTH : (row + 1) * WIDTH]
    print("".join(SHADES[-1] if n == LIMIT else SHADES[min(n // 2, len(SHADES) - 2)] for n in line).rstrip())

inside = sum(n == LIMIT for n in rounds)
# The area of the set is 1.5066; a pixel is 3.2 / WIDTH by 2.4 / HEIGHT.
area = inside * 3.2 * 2.4 / (WIDTH * HEIGHT)
assert 1.4 < area < 1.65, area
print(f"right: the area of the set is about {area:.2f}")
