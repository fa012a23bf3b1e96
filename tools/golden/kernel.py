"""PTX for a form: a kernel that runs it once a thread, on operands from memory.

Operands and results are rows of 8-byte slots: operand k of thread i at `in + 8 * (k * count + i)`, result k at
`out + 8 * (k * count + i)`; a value fills the low bytes of its slot. The third parameter points at 64 bytes a thread.
Blocks have 128 threads and counts are multiples of 32.
"""

import re

THREADS = 128


def declared(kind):
    """Type of the register and of the load for an operand or result."""
    from operands import width

    bits = max(width(kind), 16)
    base = kind.split("/")[0]
    return ("f" if base in ("f32", "f64") else "b") + str(bits), bits


def entry(name, form):
    lines = []
    emit = lines.append
    emit(f".visible .entry {name}(.param .u64 in, .param .u64 out, .param .u64 scratch, .param .u32 count) {{")
    emit("  .reg .pred %p<2>; .reg .pred %q<4>; .reg .b16 %h<8>; .reg .b32 %t<8>; .reg .b64 %w<8>; .reg .b64 %rd<8>;")
    if "$x" in form.text:
        emit("  .reg .b32 %x<32>;")
    if "$smem" in form.text:
        emit(f"  .shared .align 16 .b8 room[{16 * THREADS}];")
    for group, kinds in (("a", form.operands), ("d", form.results)):
        for index, kind in enumerate(kinds):
            if kind == "pred":
                emit(f"  .reg .pred %p{group}{index}; .reg .b32 %{group}{index};")
            else:
                emit(f"  .reg .{declared(kind)[0]} %{group}{index};")
    emit("  mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t3, %t0, %t1, %t2;")
    emit("  ld.param.u32 %t4, [count]; setp.ge.u32 %p0, %t3, %t4; @%p0 exit;")
    emit("  ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [scratch];")
    emit("  cvta.to.global.u64 %rd0, %rd0; cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;")
    emit("  mul.wide.u32 %rd3, %t4, 8; mul.wide.u32 %rd4, %t3, 8; add.u64 %rd0, %rd0, %rd4; add.u64 %rd1, %rd1, %rd4;")
    emit("  mul.lo.u64 %rd4, %rd4, 8; add.u64 %rd2, %rd2, %rd4;")
    if "$warp" in form.text:
        emit("  and.b64 %rd4, %rd4, -2048; ld.param.u64 %rd5, [scratch]; cvta.to.global.u64 %rd5, %rd5;")
        emit("  add.u64 %rd5, %rd5, %rd4;")
    if "$smem" in form.text:
        emit("  mov.u32 %t5, room; mad.lo.u32 %t5, %t2, 16, %t5;")
    for index, kind in enumerate(form.operands):
        if kind == "pred":
            emit(f"  ld.global.b32 %a{index}, [%rd0]; setp.ne.u32 %pa{index}, %a{index}, 0;")
        else:
            emit(f"  ld.global.{declared(kind)[0]} %a{index}, [%rd0];")
        emit("  add.u64 %rd0, %rd0, %rd3;")

    def substitute(match):
        group, index = match.group(1), int(match.group(2) or 0)
        if group == "warp":
            return "%rd5"
        if group == "mem":
            return "%rd2"
        if group == "smem":
            return "%t5"
        if group in "ad":
            kind = (form.operands if group == "a" else form.results)[index]
            return f"%p{group}{index}" if kind == "pred" else f"%{group}{index}"
        return f"%{group}{index}"

    emit("  " + re.sub(r"\$(smem|mem|warp|[adqhtwx](?=\d))(\d*)", substitute, form.text))
    for index, kind in enumerate(form.results):
        if kind == "pred":
            emit(f"  selp.b32 %d{index}, 1, 0, %pd{index};")
        emit(
            f"  st.global.{'b32' if kind == 'pred' else declared(kind)[0]} [%rd1], %d{index}; add.u64 %rd1, %rd1, %rd3;"
        )
    emit("  exit;")
    emit("}")
    return "\n".join(lines)


def module(named_forms, target):
    """One module of several forms; `named_forms` yields (kernel name, form)."""
    head = f".version 8.6\n.target sm_{target}\n.address_size 64\n"
    return head + "\n".join(entry(name, form) for name, form in named_forms) + "\n"
