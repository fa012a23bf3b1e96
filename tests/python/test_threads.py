"""Objects shared by threads. No test here can prove much; each fails at once where a lock is missing badly."""

import struct
import threading

import pytest
from cuda_core import LaunchConfig, launch
from support import download, upload, zeros

SOURCE = """
extern "C" __global__ void add(int *cell, int n) { atomicAdd(cell, n); }
"""
ONE = LaunchConfig(grid=1, block=32)


def together(count, work):
    errors, gate = [], threading.Barrier(count)

    def run(i):
        try:
            gate.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.fixture(scope="module")
def kernel(compile):
    return compile(SOURCE).get_kernel("add")


def test_one_stream_of_all_threads(device, stream, kernel):
    cell = zeros(device, stream, 4)

    def work(i):
        for _ in range(200):
            launch(stream, ONE, kernel, cell, i + 1)

    together(6, work)
    assert struct.unpack("<i", download(cell, stream)) == (32 * 200 * sum(range(1, 7)),)


def test_a_stream_each(device, kernel):
    results = {}

    def work(i):
        with device.create_stream() as stream:
            for _ in range(20):
                cell = upload(device, stream, bytes(4))
                launch(stream, ONE, kernel, cell, i)
                results[i] = download(cell, stream)
                cell.close(stream)

    together(6, work)
    assert results == {i: struct.pack("<i", 32 * i) for i in range(6)}


def test_close_while_others_use_it(device, kernel):
    for _ in range(20):
        stream = device.create_stream()
        cell = zeros(device, stream, 4)
        stopped = []

        def work(i, stream=stream, cell=cell, stopped=stopped):
            try:
                for _ in range(50):
                    launch(stream, ONE, kernel, cell, 1)
                    if i == 0 and _ == 10:
                        stream.close()
            except ValueError:
                stopped.append(i)

        together(4, work)
        assert 0 in stopped


def test_objects_are_made_once(device):
    seen = []

    def work(_):
        seen.append((device.context, device.memory_resource, device.default_stream, device.name, device.properties))

    together(8, work)
    assert len({id(each[1]) for each in seen}) == 1
    assert len({id(each[4]) for each in seen}) == 1
    assert len({hash(each[0]) for each in seen}) == 1


def test_attributes_of_one_device(device):
    names = list(device.properties)

    def work(i):
        for name in names[i::3] + names:
            assert device.properties[name] == getattr(device.properties, name)

    together(4, work)


def test_copies_from_many_threads(device, stream):
    def work(i):
        data = bytes([i]) * 4096
        for _ in range(20):
            buffer = upload(device, stream, data)
            assert download(buffer, stream) == data

    together(6, work)
