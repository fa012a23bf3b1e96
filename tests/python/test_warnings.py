"""EmulatedDeviceWarning: once, where no GPU was found and nobody asked for the emulator."""

from support import run_python

COUNT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import cuda_core
    imported = len(caught)
    device = cuda_core.Device(0)
    cuda_core.Device(0)
    cuda_core.Device.get_all_devices()
    device.create_stream().sync()
ours = [each for each in caught if issubclass(each.category, cuda_core.EmulatedDeviceWarning)]
print(device.is_emulated, imported, len(ours), len(caught) - len(ours))
for each in ours:
    print(each.message, "|", each.filename)
"""


def test_once_and_only_where_there_is_no_gpu():
    process = run_python(COUNT, env={"CUDA_CORE_DRIVER": None})
    first, *rest = process.stdout.splitlines()
    emulated, imported, ours, others = first.split()
    assert imported == "0"
    assert others == "0"
    assert ours == ("1" if emulated == "True" else "0")
    if rest:
        assert "emulat" in rest[0].lower()


def test_as_an_error():
    process = run_python(
        """
        import warnings
        import cuda_core
        warnings.simplefilter("error", cuda_core.EmulatedDeviceWarning)
        try:
            device = cuda_core.Device(0)
        except cuda_core.EmulatedDeviceWarning:
            print("raised")
            warnings.simplefilter("ignore")
            print(cuda_core.Device(0).is_emulated)
        else:
            print("native", device.is_emulated)
        """,
        env={"CUDA_CORE_DRIVER": None},
    )
    assert process.stdout.split() in (["raised", "True"], ["native", "False"])


def test_main_job_needs_no_other_warning():
    process = run_python(
        """
        import cuda_core
        import warnings
        warnings.simplefilter("ignore", cuda_core.EmulatedDeviceWarning)
        device = cuda_core.Device(0)
        with device.create_stream() as stream:
            code = cuda_core.Program('extern "C" __global__ void k(int *p) { *p = 1; }', "c++").compile("cubin")
            buffer = device.allocate(4, stream=stream)
            config = cuda_core.LaunchConfig(grid=1, block=1)
            cuda_core.launch(stream, config, code.get_kernel("k"), buffer)
        print("done")
        """,
        flags=("-W", "error"),
        env={"CUDA_CORE_DRIVER": None},
    )
    assert process.stdout.strip() == "done"
    assert process.stderr.strip() == ""
