"""Fixtures of the whole suite. Collection touches no device: nothing at the top of a test file opens a driver."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--figures", metavar="SUBJECT", help="end with one line: what the tests did, and failures")


def pytest_unconfigure(config):
    """Here and not in the summary, which goes on after its hooks: the figures are the last line."""
    subject = config.getoption("--figures")
    if subject is None:
        return
    from support import figures

    outcomes = config.pluginmanager.get_plugin("terminalreporter").stats

    def count(outcome):
        return len(outcomes.get(outcome, []))

    done = "".join(f"{name} {number}, " for name, number in sorted(figures.items()))
    failures = count("failed") + count("error")
    skipped = f", skipped {count('skipped')}" if count("skipped") else ""
    print(f"{subject}: {done}scenarios {count('passed') + failures}{skipped}, failures {failures}")


@pytest.fixture(scope="session")
def device():
    from cuda_core import Device

    return Device(0)


@pytest.fixture(scope="session")
def emulated(device):
    """Whether the device is the emulated one: what a GPU cannot tell is then looked at, too."""
    return device.is_emulated


@pytest.fixture
def stream(device):
    with device.create_stream() as stream:
        yield stream


@pytest.fixture(scope="session")
def compile(device):
    """compile(source, *name_expressions, target="cubin", **options): an ObjectCode, compiled once a session."""
    from cuda_core import Program

    modules = {}

    def compile(source, *names, target="cubin", **options):
        key = (source, names, target, repr(sorted(options.items())))
        if key not in modules:
            program = Program(source, "c++", {"std": "c++17", **options})
            modules[key] = program.compile(target, name_expressions=names)
        return modules[key]

    return compile


@pytest.fixture
def run(device, stream, compile):
    """run(source, name, grid, block, *arguments): arrays go to the device and come back."""

    import numpy
    from cuda_core import LaunchConfig, launch
    from support import upload

    def run(source, name, grid, block, *arguments, shmem_size=0, **options):
        template = "<" in name
        kernel = compile(source, *([name] if template else []), **options).get_kernel(name)
        buffers = [
            upload(device, stream, each) if isinstance(each, numpy.ndarray) and each.ndim else each
            for each in arguments
        ]
        launch(stream, LaunchConfig(grid=grid, block=block, shmem_size=shmem_size), kernel, *buffers)
        for each, buffer in zip(arguments, buffers, strict=True):
            if buffer is not each:
                buffer.copy_to(each, stream=stream)
        stream.sync()

    return run
