"""ObjectCode: from where it comes, what it holds, its kernels."""

import gc
import pickle
import weakref

import pytest
from cuda_core import CUDAError, Kernel, LaunchConfig, ObjectCode, Program, launch
from support import download, zeros

SOURCE = """
template <typename T> __global__ void set(T *out, T value) { *out = value; }
extern "C" __global__ void five(int *out) { *out = 5; }
extern "C" __global__ void six(int *out) { *out = 6; }
"""
ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture(scope="module")
def cubin(compile):
    return compile(SOURCE, "set<int>")


@pytest.fixture(scope="module")
def ptx(compile):
    return compile(SOURCE, "set<int>", target="ptx")


def run(device, stream, kernel, *more):
    out = zeros(device, stream, 4)
    launch(stream, ONE, kernel, out, *more)
    return int.from_bytes(download(out, stream), "little", signed=True)


def test_attributes(cubin):
    assert cubin.code_type == "cubin"
    assert isinstance(cubin.name, str)
    assert isinstance(cubin.symbol_mapping, dict)
    assert cubin.symbol_mapping["set<int>"].encode() in cubin.code
    assert cubin.handle is not None
    assert hash(cubin.handle) == hash(cubin.handle)
    assert "ObjectCode" in repr(cubin)
    assert "cubin" in repr(cubin)


def test_identity(cubin, ptx):
    assert cubin == cubin
    assert cubin != ptx
    assert hash(cubin) == hash(cubin)
    assert len({cubin, ptx}) == 2
    assert cubin != "cubin"
    assert weakref.ref(cubin)() is cubin


def test_get_kernel(device, stream, cubin):
    assert isinstance(cubin.get_kernel("five"), Kernel)
    assert run(device, stream, cubin.get_kernel("five")) == 5
    assert run(device, stream, cubin.get_kernel(b"six")) == 6
    assert run(device, stream, cubin.get_kernel("set<int>"), -3) == -3
    assert run(device, stream, cubin.get_kernel(cubin.symbol_mapping["set<int>"]), -4) == -4


@pytest.mark.parametrize("name", ["sevn", "", "set<float>", "five\n", "é"])
def test_unknown_kernel_lists_those_there_are(cubin, name):
    with pytest.raises(KeyError) as caught:
        cubin.get_kernel(name)
    assert isinstance(caught.value, CUDAError)
    for there in ("five", "six", "set<int>"):
        assert there in str(caught.value)
    assert name in str(caught.value)


def test_kernel_name_of_a_wrong_type(cubin):
    with pytest.raises(TypeError):
        cubin.get_kernel(5)
    with pytest.raises(TypeError):
        cubin.get_kernel()
    with pytest.raises((ValueError, KeyError)):
        cubin.get_kernel("fi\0ve")


def test_mapping_of_kernels(cubin):
    """What holds several things is a collection of them."""
    assert len(cubin) == 3
    names = list(cubin)
    assert len(names) == 3
    assert {"five", "six"} <= set(names)
    assert "five" in cubin
    assert "seven" not in cubin
    assert cubin["five"] == cubin.get_kernel("five")
    with pytest.raises(KeyError):
        cubin["seven"]


@pytest.mark.parametrize("how", ["bytes", "file"])
def test_from_ptx(device, stream, ptx, how, tmp_path):
    source = ptx.code
    if how == "file":
        source = str(tmp_path / "code.ptx")
        (tmp_path / "code.ptx").write_bytes(ptx.code)
    code = ObjectCode.from_ptx(source, name="mine", symbol_mapping=ptx.symbol_mapping)
    assert code.code_type == "ptx"
    assert code.name == "mine"
    assert run(device, stream, code.get_kernel("five")) == 5
    assert run(device, stream, code.get_kernel("set<int>"), 11) == 11


@pytest.mark.parametrize("how", ["bytes", "file"])
def test_from_cubin(device, stream, cubin, how, tmp_path):
    source = cubin.code
    if how == "file":
        source = str(tmp_path / "code.cubin")
        (tmp_path / "code.cubin").write_bytes(cubin.code)
    code = ObjectCode.from_cubin(source)
    assert code.code_type == "cubin"
    assert code.name == ""
    assert run(device, stream, code.get_kernel("six")) == 6


def test_other_formats_are_held(device):
    for name in ("ltoir", "fatbin", "object", "library"):
        code = getattr(ObjectCode, f"from_{name}")(b"some bytes", name="x")
        assert code.code_type == name
        assert code.code == b"some bytes"


UNKNOWN_OPCODE = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { flub.s32 %r1; ret; }"


def test_code_that_is_nothing(device, stream):
    with pytest.raises((CUDAError, ValueError)) as caught:
        ObjectCode.from_cubin(b"this is no cubin").get_kernel("k")
    assert "CUDA_ERROR" in str(caught.value) or "cubin" in str(caught.value)
    with pytest.raises(CUDAError, match=r"flub|CUDA_ERROR_INVALID_PTX"):  # at the latest at the launch
        launch(stream, ONE, ObjectCode.from_ptx(UNKNOWN_OPCODE).get_kernel("k"))
    with pytest.raises(CUDAError, match=r"CUDA_ERROR_INVALID_PTX"):
        ObjectCode.from_ptx(UNKNOWN_OPCODE.replace(b"flub.s32 %r1;", b"{{{")).get_kernel("k")
    with pytest.raises((FileNotFoundError, OSError, CUDAError)):
        ObjectCode.from_cubin("/nonexistent/code.cubin").get_kernel("k")
    with pytest.raises(TypeError):
        ObjectCode.from_cubin(5)
    with pytest.raises(TypeError):
        ObjectCode.from_ptx(b"", names="x")
    with pytest.raises((TypeError, RuntimeError)):
        ObjectCode()


def test_pickle(device, stream, cubin):
    again = pickle.loads(pickle.dumps(cubin))
    assert again.code == cubin.code
    assert again.code_type == "cubin"
    assert again.name == cubin.name
    assert again.symbol_mapping == cubin.symbol_mapping
    assert run(device, stream, again.get_kernel("set<int>"), 77) == 77


def test_kernel_keeps_its_code(device, stream):
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("five")
    gc.collect()
    assert run(device, stream, kernel) == 5


def test_symbol_mapping_is_its_own(cubin):
    cubin.symbol_mapping["other"] = "x"
    try:
        assert "set<int>" in cubin.symbol_mapping
    finally:
        cubin.symbol_mapping.pop("other", None)


def test_symbol_mapping_that_changes_while_it_is_read(cubin):
    class Name(str):
        changes = False

        def __hash__(self):
            if self.changes:
                given.clear()
            return str.__hash__(self)

    given = {Name("first"): "five", "second": "six"}
    Name.changes = True
    code = ObjectCode.from_cubin(cubin.code, symbol_mapping=given)
    Name.changes = False
    assert code.symbol_mapping == {"first": "five", "second": "six"}
    assert given == {}


def test_reducing_does_not_give_the_mapping_away(cubin):
    _, (_, _, _, mapping) = cubin.__reduce__()
    before = cubin.symbol_mapping
    mapping["other"] = "twice"
    assert cubin.symbol_mapping == before


def test_many_modules(device, stream):
    kernels = [
        Program('extern "C" __global__ void k(int *p) { *p = N; }', "c++", {"define_macro": f"N={i}"})
        .compile("cubin")
        .get_kernel("k")
        for i in range(5)
    ]
    assert [run(device, stream, kernel) for kernel in kernels] == list(range(5))


def test_code_without_kernels(compile):
    code = compile("template <typename T> __global__ void k(T *) {}")
    for look in (code.get_kernel, code.__getitem__):
        with pytest.raises(KeyError, match=r"this code has none .*name_expressions"):
            look("k<int>")


@pytest.mark.parametrize("format", ["cubin", "ptx", "ltoir", "fatbin", "object", "library"])
def test_class_methods_have_documentation(format):
    for method in (getattr(ObjectCode, f"from_{format}"), Kernel.from_handle):
        assert "Raises TypeError" in method.__doc__


@pytest.mark.parametrize(
    ("arguments", "exception", "says"),
    [
        (("ptx", b"x", "n", {1: "a"}), TypeError, "a name in symbol_mapping must be a str or bytes, not int"),
        (("ptx", b"x", "n", {"a": None}), TypeError, "a value of symbol_mapping must be a str or bytes, not NoneType"),
        (("ptx", b"x", "n", {b"\xff": "a"}), UnicodeDecodeError, "invalid start byte"),
        (("p\0tx", b"x", "n", {}), ValueError, "null character"),
        (("nothing", b"x", "n", {}), ValueError, "'nothing' is no kind of code"),
        (("ptx", 3, "n", {}), TypeError, "module must be bytes, or the path of a file, not int"),
        (("ptx", b"x", 3, {}), TypeError, "must be str, not int"),
    ],
)
def test_pickle_that_is_broken(arguments, exception, says):
    rebuild, _ = ObjectCode.from_ptx(b"x").__reduce__()
    with pytest.raises(exception, match=says):
        rebuild(*arguments)
