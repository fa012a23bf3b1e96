"""Program: compiling CUDA C++ and PTX, name expressions, logs, errors."""

import io
import threading

import pytest
from cuda_core import (
    ClosedError,
    CompileError,
    CUDAError,
    LaunchConfig,
    NotSupportedError,
    ObjectCode,
    Program,
    ProgramOptions,
    launch,
)
from support import download, zeros

SOURCE = """
template <typename T> __global__ void set(T *out, T value) { *out = value; }
extern "C" __global__ void plain(int *out) { *out = VALUE; }
"""


@pytest.fixture
def program(device):
    with Program(SOURCE, "c++", {"std": "c++17", "define_macro": "VALUE=41", "name": "set.cu"}) as program:
        yield program


def test_attributes(program):
    assert program.backend == "NVRTC"
    assert program.is_closed is False
    assert "Program" in repr(program)
    assert int(program.handle) != 0 or program.handle is not None


def test_code_type_by_keyword(device):
    assert isinstance(Program(SOURCE, code_type="c++", options=None), Program)
    assert isinstance(Program(code=SOURCE, code_type="c++"), Program)
    assert isinstance(Program(SOURCE, "C++"), Program)


@pytest.mark.parametrize("target", ["ptx", "cubin"])
def test_compile(device, stream, program, target):
    code = program.compile(target, name_expressions=("set<int>", "set<double>"))
    assert isinstance(code, ObjectCode)
    assert code.code_type == target
    assert isinstance(code.code, bytes)
    assert len(code.code) > 100
    if target == "ptx":
        assert b".version" in code.code
    else:
        assert code.code[:4] == b"\x7fELF"
    assert set(code.symbol_mapping) == {"set<int>", "set<double>"}
    out = zeros(device, stream, 8)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("set<int>"), out, -7)
    assert int.from_bytes(download(out, stream)[:4], "little", signed=True) == -7
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("plain"), out)
    assert int.from_bytes(download(out, stream)[:4], "little", signed=True) == 41


def test_target_by_enumeration(program):
    from cuda_core.typing import ObjectCodeFormatType

    assert program.compile(ObjectCodeFormatType.PTX).code_type == "ptx"


def test_name_expressions_as_list_and_string(device):
    with Program(SOURCE, "c++", {"define_macro": "VALUE=1"}) as program:
        assert list(program.compile("ptx", name_expressions=["set<float>"]).symbol_mapping) == ["set<float>"]
    with Program(SOURCE, "c++", {"define_macro": "VALUE=1"}) as program:
        # A bare string is one name, never its letters.
        try:
            mapping = program.compile("ptx", name_expressions="set<float>").symbol_mapping
        except TypeError:
            pass
        else:
            assert list(mapping) == ["set<float>"]


def test_compile_twice(program):
    first = program.compile("ptx", name_expressions=("set<int>",))
    second = program.compile("cubin", name_expressions=("set<float>",))
    assert first.code_type == "ptx"
    assert second.code_type == "cubin"
    assert "set<float>" in second.symbol_mapping


def test_bytes_source(device):
    try:
        program = Program(b'extern "C" __global__ void k() {}', "c++")
    except TypeError:
        return  # cuda.core takes str alone
    assert program.compile("ptx").get_kernel("k")


def test_ptx_program_says_where_ptx_goes(program):
    """Until there is a linker: a refusal that names what to use instead."""
    ptx = program.compile("ptx").code.decode()
    with pytest.raises(NotSupportedError, match=r"ObjectCode\.from_ptx"):
        Program(ptx, "ptx").compile("cubin")


def test_syntax_error(device):
    program = Program(
        'extern "C" __global__ void broken(int *p)\n{\n    *p = undefined_thing;\n}\n', "c++", {"name": "mine.cu"}
    )
    with pytest.raises(CompileError) as caught:
        program.compile("cubin")
    error = caught.value
    assert isinstance(error, CUDAError)
    assert isinstance(error.log, str)
    assert "mine.cu(3)" in error.log
    assert "undefined_thing" in error.log
    assert "undefined_thing" in str(error)
    assert "mine.cu(3)" in str(error)
    assert error.name == "NVRTC_ERROR_COMPILATION"
    assert error.code == 6
    # the program is still usable, and wrong again
    with pytest.raises(CompileError):
        program.compile("ptx")


def test_unknown_name_expression(program):
    with pytest.raises((CompileError, CUDAError, KeyError)) as caught:
        program.compile("ptx", name_expressions=("nothing<int>",))
    assert "nothing" in str(caught.value)


def test_log_of_warnings(device):
    source = 'extern "C" __global__ void k(int *p) { int never_used = 3; *p = 1; }'
    logs = io.StringIO()
    Program(source, "c++").compile("ptx", logs=logs)
    assert "never_used" in logs.getvalue()
    with pytest.raises((TypeError, AttributeError)):
        Program(source, "c++").compile("ptx", logs=5)


def test_no_log_without_warnings(device):
    logs = io.StringIO()
    Program('extern "C" __global__ void k(int *p) { *p = 1; }', "c++").compile("ptx", logs=logs)
    assert logs.getvalue().strip("\0\n ") == ""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((5, "c++"), TypeError),
        ((None, "c++"), TypeError),
        (("", "fortran"), (ValueError, RuntimeError)),
        (("", 5), (TypeError, ValueError, RuntimeError)),
        (("", "c++", 5), TypeError),
        (("", "c++", {"standard": "c++17"}), TypeError),
        (("a\0b", "c++"), ValueError),
    ],
)
def test_bad_arguments(device, arguments, error):
    with pytest.raises(error):
        Program(*arguments)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        (("elf",), {}, (ValueError, RuntimeError)),
        ((5,), {}, (TypeError, ValueError, RuntimeError)),
        (("ptx",), {"name_expressions": (5,)}, TypeError),
        (("ptx",), {"name_expressions": 5}, TypeError),
        (("ptx",), {"names": ()}, TypeError),
        ((), {}, TypeError),
    ],
)
def test_bad_compile_arguments(program, arguments, keywords, error):
    with pytest.raises(error):
        program.compile(*arguments, **keywords)


def test_close(device):
    program = Program(SOURCE, "c++")
    program.close()
    assert program.is_closed
    assert program.close() is None
    with pytest.raises(ClosedError, match="closed"):
        program.compile("ptx")
    with pytest.raises(ClosedError), program:
        pass


def test_handle_of_a_program_that_is_closed_meanwhile(device):
    class Closes(ProgramOptions):
        def __getattribute__(self, name):
            if name == "name" and closes:
                program.close()
            return super().__getattribute__(name)

    closes = False
    program = Program(SOURCE, "c++", Closes())
    closes = True
    with pytest.raises(ClosedError, match="closed"):
        program.handle  # noqa: B018


def test_code_outlives_the_program(device, stream):
    with Program(SOURCE, "c++", {"define_macro": ("VALUE", 9)}) as program:
        code = program.compile("cubin")
    out = zeros(device, stream, 4)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("plain"), out)
    assert download(out, stream) == (9).to_bytes(4, "little")


def test_empty_program(device):
    code = Program("", "c++").compile("ptx")
    with pytest.raises(KeyError):
        code.get_kernel("anything")


def test_headers(device, stream, tmp_path):
    (tmp_path / "answer.h").write_text("#pragma once\n#define ANSWER 42\n")
    source = '#include "answer.h"\nextern "C" __global__ void k(int *p) { *p = ANSWER; }'
    for path in (tmp_path, str(tmp_path), [tmp_path], [str(tmp_path), "/nonexistent"]):
        code = Program(source, "c++", ProgramOptions(include_path=path)).compile("ptx")
        assert b"42" in code.code
    with pytest.raises(CompileError, match=r"answer\.h"):
        Program(source, "c++").compile("ptx")


def test_cuda_headers_are_found(device):
    source = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(__half *p) { *p = __float2half(1.5f); }
    """
    assert Program(source, "c++").compile("ptx").get_kernel("k").num_arguments == 1


def test_threads_compile_at_the_same_time(device):
    results, errors = {}, []

    def work(i):
        try:
            program = Program(f'extern "C" __global__ void k{i}(int *p) {{ *p = {i}; }}', "c++")
            results[i] = program.compile("cubin").get_kernel(f"k{i}").num_arguments
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert results == dict.fromkeys(range(6), 1)


def test_pickling_is_refused(program):
    import pickle

    with pytest.raises(TypeError):
        pickle.dumps(program)
