"""ProgramOptions: defaults, checking, and what becomes of each field."""

import dataclasses
import json

import pytest
from cuda_core import CompileError, Program, ProgramOptions

FIELDS = [
    "name",
    "arch",
    "relocatable_device_code",
    "extensible_whole_program",
    "debug",
    "lineinfo",
    "device_code_optimize",
    "ptxas_options",
    "max_register_count",
    "ftz",
    "prec_sqrt",
    "prec_div",
    "fma",
    "use_fast_math",
    "extra_device_vectorization",
    "link_time_optimization",
    "gen_opt_lto",
    "define_macro",
    "undefine_macro",
    "include_path",
    "pre_include",
    "no_source_include",
    "std",
    "builtin_move_forward",
    "builtin_initializer_list",
    "disable_warnings",
    "restrict",
    "device_as_default_execution_space",
    "device_int128",
    "optimization_info",
    "no_display_error_number",
    "diag_error",
    "diag_suppress",
    "diag_warn",
    "brief_diagnostics",
    "time",
    "split_compile",
    "fdevice_syntax_only",
    "minimal",
    "no_cache",
    "fdevice_time_trace",
    "device_float128",
    "frandom_seed",
    "ofast_compile",
    "pch",
    "create_pch",
    "use_pch",
    "pch_dir",
    "pch_verbose",
    "pch_messages",
    "instantiate_templates_in_pch",
    "extra_sources",
    "use_libdevice",
    "numba_debug",
    "use_bundled_headers",
]


def options_of(**options):
    return [option.decode() for option in ProgramOptions(arch="sm_80", **options).as_bytes("nvrtc")]


def test_fields_and_defaults():
    fields = {field.name: field.default for field in dataclasses.fields(ProgramOptions)}
    assert set(FIELDS) <= set(fields)
    assert fields.pop("name") == "default_program"
    assert set(fields.values()) == {None}


def test_repr_and_equality():
    assert ProgramOptions(std="c++17") == ProgramOptions(std="c++17")
    assert ProgramOptions(std="c++17") != ProgramOptions(std="c++20")
    assert "std='c++17'" in repr(ProgramOptions(std="c++17"))


def test_replace():
    options = dataclasses.replace(ProgramOptions(std="c++17"), lineinfo=True)
    assert (options.std, options.lineinfo) == ("c++17", True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"std": "c++17"}, "--std=c++17"),
        ({"relocatable_device_code": True}, "--relocatable-device-code=true"),
        ({"relocatable_device_code": False}, "--relocatable-device-code=false"),
        ({"debug": True}, "--device-debug"),
        ({"lineinfo": True}, "--generate-line-info"),
        ({"max_register_count": 32}, "--maxrregcount=32"),
        ({"ftz": True}, "--ftz=true"),
        ({"prec_div": False}, "--prec-div=false"),
        ({"prec_sqrt": False}, "--prec-sqrt=false"),
        ({"fma": False}, "--fmad=false"),
        ({"use_fast_math": True}, "--use_fast_math"),
        ({"define_macro": "A"}, "--define-macro=A"),
        ({"define_macro": ("A", "3")}, "--define-macro=A=3"),
        ({"define_macro": ["A", ("B", "2")]}, "--define-macro=B=2"),
        ({"undefine_macro": "A"}, "--undefine-macro=A"),
        ({"undefine_macro": ["A", "B"]}, "--undefine-macro=B"),
        ({"include_path": "/somewhere"}, "--include-path=/somewhere"),
        ({"pre_include": ["a.h", "b.h"]}, "--pre-include=b.h"),
        ({"disable_warnings": True}, "--disable-warnings"),
        ({"diag_suppress": 177}, "--diag-suppress=177"),
        ({"device_as_default_execution_space": True}, "--device-as-default-execution-space"),
        ({"device_int128": True}, "--device-int128"),
        ({"split_compile": 0}, "--split-compile=0"),
        ({"minimal": True}, "--minimal"),
        ({"no_cache": True}, "--no-cache"),
        ({"gen_opt_lto": True}, "--gen-opt-lto"),
    ],
)
def test_as_bytes(options, expected):
    assert expected in options_of(**options)


def test_arch():
    for arch in ("sm_80", "80"):
        assert "-arch=sm_80" in [
            o.decode().replace("--gpu-architecture", "-arch") for o in ProgramOptions(arch=arch).as_bytes("nvrtc")
        ]


def test_false_leaves_a_flag_out():
    assert not any("debug" in option for option in options_of(debug=False))
    assert not any("line" in option for option in options_of(lineinfo=False))


def test_unknown_backend():
    with pytest.raises(ValueError, match="backend"):
        ProgramOptions(arch="sm_80").as_bytes("llvm")


@pytest.mark.parametrize(
    "options",
    [
        {"std": 17},
        {"debug": "yes"},
        {"max_register_count": "32"},
        {"define_macro": 5},
        {"include_path": 5},
        {"ftz": 1},
        {"name": 5},
    ],
    ids=json.dumps,
)
def test_wrong_types_name_the_field(options):
    (field,) = options
    with pytest.raises(TypeError, match=field):
        ProgramOptions(**options)


def test_unknown_field():
    with pytest.raises(TypeError, match="optimise"):
        ProgramOptions(optimise=3)


# ---- what they do, as the compiler sees it -------------------------------------------------------------------------


def ptx(source, **options):
    return Program(source, "c++", options).compile("ptx").code.decode()


def test_macros_reach_the_source(device):
    source = 'extern "C" __global__ void k(int *p) { *p = A + B; }'
    assert "4660" in ptx(source, define_macro=[("A", "4600"), "B=60"])
    assert "4660" in ptx(source, define_macro={"A": 4600, "B": 60})
    with pytest.raises(CompileError):
        ptx(source, define_macro="A=1")


def test_flags_reach_the_compiler(device):
    source = 'extern "C" __global__ void k(float *p) { p[0] = p[1] / p[2]; p[3] = p[4] * p[5] + p[6]; }'
    assert "div.rn.f32" in ptx(source)
    assert "div.approx.ftz.f32" in ptx(source, use_fast_math=True)
    assert "fma.rn.f32" in ptx(source)
    assert "fma.rn.f32" not in ptx(source, fma=False)
    assert "ftz" not in ptx(source, ftz=False)
    assert "fma.rn.ftz.f32" in ptx(source, ftz=True)


def test_line_information(device):
    source = 'extern "C" __global__ void k(float *p) { p[0] = 1; }'
    assert ".loc" not in ptx(source)
    assert ".loc" in ptx(source, lineinfo=True)


def test_architecture_reaches_the_compiler(device):
    source = 'extern "C" __global__ void k(int *p) { *p = __CUDA_ARCH__; }'
    assert ".target sm_90" in ptx(source, arch="sm_90")
    assert f".target sm_{device.arch}" in ptx(source)


def test_standard_reaches_the_compiler(device):
    source = 'extern "C" __global__ void k(long *p) { *p = __cplusplus; }'
    assert "201402" in ptx(source, std="c++14")
    assert "202002" in ptx(source, std="c++20")


def test_unknown_architecture(device):
    with pytest.raises((CompileError, RuntimeError, ValueError), match=r"(?i)arch"):
        ptx("", arch="sm_1")


def test_default_execution_space(device):
    source = 'int twice(int x) { return 2 * x; } extern "C" __global__ void k(int *p) { *p = twice(*p); }'
    with pytest.raises(CompileError):
        ptx(source)
    assert "k" in ptx(source, device_as_default_execution_space=True)


def test_an_unknown_option_lists_the_known():
    with pytest.raises(TypeError, match=r"unexpected option: 'colour'; there are: name, arch, .*no_cache"):
        Program("", "c++", {"arch": "sm_80", "colour": 1})
