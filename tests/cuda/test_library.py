# SPDX-License-Identifier: MIT
"""NVSHMEM's library: found, taken apart, injected only where it is used; what is missing is said before ptxas."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from tests.cuda.conftest import STUB, Compile, count
from triton_dist.backends.cuda import bitcode, library, symbols, wrappers
from triton_dist.backends.cuda.assembled import assembled
from triton_dist.backends.cuda.bitcode import Pieces, Signature
from triton_dist.compiler import hook
from triton_dist.errors import (
    DeviceLibraryFile,
    DeviceLibraryMissing,
    NvshmemMismatch,
    NvshmemNotFound,
    UndefinedDeviceFunction,
)
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.records import records


def install(root: Path, *files: str, version: str = "3 4 5") -> Path:
    lib, include = root / "lib", root / "include" / "non_abi"
    lib.mkdir(parents=True)
    include.mkdir(parents=True)
    for file in files:
        (lib / file).write_bytes(b"BC")
    parts = zip(("MAJOR", "MINOR", "PATCH"), version.split(), strict=True)
    (include / "nvshmem_version.h").write_text(
        "".join(f"#define NVSHMEM_VENDOR_{part}_VERSION {number}\n" for part, number in parts)
    )
    return root


def found(root: Path, monkeypatch: pytest.MonkeyPatch) -> library.Installed:
    monkeypatch.setenv("NVSHMEM_HOME", str(root))
    return library.installed()


def test_one_file_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = found(install(tmp_path, "libnvshmem_device.bc"), monkeypatch)
    assert installed.version == "3.4.5"
    assert installed.file_for(90).name == "libnvshmem_device.bc"


@pytest.mark.parametrize(("arch", "name"), [(90, "sm_90"), (100, "sm_100"), (120, "sm_100"), (86, "sm_80")])
def test_a_file_an_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: int, name: str) -> None:
    files = [f"libnvshmem_device_sm_{known}.bc" for known in (80, 90, 100)]
    installed = found(install(tmp_path, *files, version="3 8 0"), monkeypatch)
    assert installed.file_for(arch).name == f"libnvshmem_device_{name}.bc"
    with pytest.raises(NvshmemNotFound, match=r"NVSHMEM 3\.8\.0.*has sm_80, sm_90, sm_100, none for sm_75"):
        installed.file_for(75)


def test_nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NvshmemNotFound, match="Install nvidia-nvshmem-cu13"):
        found(tmp_path / "nowhere", monkeypatch)
    assert library.identity() == "no NVSHMEM"


def test_two_packages_of_different_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVSHMEM_HOME", raising=False)
    versions = {"nvidia-nvshmem-cu13": "3.8.0", "nvidia-nvshmem-cu12": "3.4.5"}
    monkeypatch.setattr(library.importlib.metadata, "version", versions.__getitem__)
    with pytest.raises(NvshmemMismatch, match=r"their files are mixed.*Uninstall both"):
        library.check_packages()
    monkeypatch.setenv("NVSHMEM_HOME", "/opt/nvshmem")  # neither is used
    library.check_packages()


def test_identity_follows_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found(install(tmp_path, "libnvshmem_device.bc"), monkeypatch)
    before = library.identity()
    (tmp_path / "lib" / "libnvshmem_device.bc").write_bytes(b"BC, another")
    assert library.identity() != before
    monkeypatch.setenv("NVSHMEM_REMOTE_TRANSPORT", "none")
    assert library.identity().endswith("no network")


@pytest.fixture
def pieces() -> Pieces:
    text = STUB.read_bytes()
    return Pieces(bitcode.cut(text), text=text)


def test_pieces_and_what_they_need(pieces: Pieces) -> None:
    assert "nvshmem_ptr" in pieces
    assert "missing_from_the_library" not in pieces
    text = pieces.extract(["nvshmem_my_pe"])
    for needed in ("@nvshmem_my_pe", "%state_t = type", "attributes #0", "!2 = !{", "@llvm.compiler.used"):
        assert needed in text
    for other in ("nvshmem_putmem", "never_used", "attributes #1"):
        assert other not in text


def test_stubs_keep_the_calling_convention(pieces: Pieces) -> None:
    text = pieces.extract(["nvshmem_fence"], wrappers.WITHOUT_NETWORK)
    assert "define internal fastcc void @_Z23nvshmemi_transfer_fence() noinline {" in text
    assert "network fence" not in text


def test_undefined_ones(pieces: Pieces) -> None:
    assert pieces.undefined(["nvshmem_quiet"]) == ["missing_from_the_library"]
    assert pieces.undefined(["nvshmem_putmem"]) == []


@pytest.mark.parametrize(
    ("head", "result", "parameters"),
    [
        ("define void @f() #4 {", "void", ()),
        ("define dso_local noundef i32 @f(ptr noundef %0, i64 %1) local_unnamed_addr #5 {", "i32", ("ptr", "i64")),
        ("define internal fastcc i1 @f(i32 noundef range(i32 0, 5) %0, i8 signext %1) {", "i1", ("i32", "i8")),
    ],
)
def test_signatures(head: str, result: str, parameters: tuple[str, ...]) -> None:
    assert Signature.parse(head, "f") == Signature(result, parameters)


def test_pieces_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    made: list[Path] = []

    def linked(path: Path, functions: object) -> str:
        made.append(path)
        return STUB.read_text()

    monkeypatch.setattr(bitcode, "linked_text", linked)
    binary = tmp_path / "libnvshmem_device.bc"
    binary.write_bytes(b"BC")
    for _ in range(2):
        bitcode._pieces_of.cache_clear()
        again = bitcode.pieces_of(binary, ["nvshmem_ptr"])
        assert again.extract(["nvshmem_ptr"]).count("define") == 1
    assert made == [binary]
    binary.write_bytes(b"BC of another version")
    bitcode.pieces_of(binary, ["nvshmem_ptr"])
    assert made == [binary, binary]


def test_a_library_that_triton_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    broken = tmp_path / "libnvshmem_device.bc"
    broken.write_bytes(b"no bitcode")
    with pytest.raises(NvshmemMismatch, match=r"cannot read .*Use a newer Triton, or an older NVSHMEM"):
        bitcode.pieces_of(broken, ["nvshmem_ptr"])


def test_what_triton_links_is_found_by_name(tmp_path: Path) -> None:
    text = bitcode.linked_text(STUB, ["nvshmem_ptr", "nvshmem_fence"])
    made = Pieces(bitcode.cut(text.encode()), text=text.encode())
    assert {"nvshmem_ptr", "nvshmem_fence", "_Z23nvshmemi_transfer_fence"} == set(made.functions())
    assert not made._head("nvshmem_ptr").startswith("define internal")
    assert made._head("_Z23nvshmemi_transfer_fence").startswith("define internal")


@triton_dist.jit
def lacking(x):
    libshmem_device.putmem_warp(x, x, 8, 1)


@triton_dist.jit
def incomplete(x):
    libshmem_device.quiet()


def failing_line(kernel: triton.JITFunction) -> str:
    return f"test_library.py:{kernel.starting_line_number + 2}"


def test_a_missing_function_is_said_with_its_line(compiled: Compile) -> None:
    message = r"nvshmemx_putmem_warp is not defined in .*nearest.*nvshmem"
    with pytest.raises(UndefinedDeviceFunction, match=message) as caught:
        compiled(lacking, "*i64")
    assert failing_line(lacking) in str(caught.value)


def test_what_a_function_needs_must_be_there_too(compiled: Compile) -> None:
    with pytest.raises(UndefinedDeviceFunction, match=r"nvshmem_quiet .* It needs missing_from_the_library"):
        compiled(incomplete, "*i64")


@triton_dist.language.builtin
def wrongly_typed(x, _semantic=None):
    table = {(tl.int32,): ("nvshmem_ptr", tl.int32)}
    return dl.extern_call("libnvshmem_device", "", [x], table, True, _semantic=_semantic)


@triton_dist.language.builtin
def of_a_stranger(x, path: tl.constexpr, _semantic=None):
    return dl.extern_call("strange", path, [x], {(tl.int32,): ("strange_f", tl.int32)}, True, _semantic=_semantic)


@triton_dist.jit
def call_wrongly(x):
    tl.store(x, wrongly_typed(3))


@triton_dist.jit
def call_stranger(x, PATH: tl.constexpr):
    tl.store(x, of_a_stranger(3, PATH))


def test_a_call_that_does_not_fit_the_library(compiled: Compile) -> None:
    message = r"nvshmem_ptr is ptr \(ptr, i32\) in this library, but is called as i32 \(i32\)"
    with pytest.raises(NvshmemMismatch, match=message):
        compiled(call_wrongly, "*i32")


def test_a_library_of_the_users(compiled: Compile, tmp_path: Path) -> None:
    with pytest.raises(DeviceLibraryMissing, match=r"extern_libs=\{'strange': path\}"):
        compiled(call_stranger, "*i32", constants={"PATH": ""})
    path = tmp_path / "strange.ll"
    path.write_text("define i32 @strange_f(i32 %x) alwaysinline {\n  %r = mul i32 %x, 7\n  ret i32 %r\n}\n")
    made = compiled(call_stranger, "*i32", constants={"PATH": str(path)})
    assert count(made, r"mov\.b32\s+%r\d+, 21") == 1


def test_a_library_of_the_users_that_is_not_there(compiled: Compile, tmp_path: Path) -> None:
    path = str(tmp_path / "absent.bc")
    with pytest.raises(DeviceLibraryFile, match=rf"test_library\.py:\d+: strange_f belongs .*'{path}' does not exist"):
        compiled(call_stranger, "*i32", constants={"PATH": path})


@triton_dist.language.builtin
def of_another_file(x, path: tl.constexpr, _semantic=None):
    return dl.extern_call("strange", path, [x], {(tl.int32,): ("strange_g", tl.int32)}, True, _semantic=_semantic)


@triton_dist.jit
def call_strangers(x, PATH: tl.constexpr, OTHER: tl.constexpr):
    tl.store(x, of_a_stranger(3, PATH) + of_another_file(4, OTHER) + of_a_stranger(5, PATH))


def test_a_library_of_several_files(compiled: Compile, tmp_path: Path) -> None:
    paths = []
    for name, factor in ("strange_f", 7), ("strange_g", 100):
        paths.append(tmp_path / f"{name}.ll")
        paths[-1].write_text(
            f"define i32 @{name}(i32 %x) alwaysinline {{\n  %r = mul i32 %x, {factor}\n  ret i32 %r\n}}\n"
        )
    made = compiled(call_strangers, "*i32", constants={"PATH": str(paths[0]), "OTHER": str(paths[1])})
    assert count(made, r"mov\.b32\s+%r\d+, 456") == 1


def test_the_users_own_nvshmem(compiled: Compile, tmp_path: Path) -> None:
    other = tmp_path / "other.ll"
    other.write_text(STUB.read_text().replace("i64 24", "i64 40"))
    made = compiled(my_rank, "*i32", extern_libs={"libnvshmem_device": str(other)})
    assert "nvshmemi_device_state_d+40" in made.asm["ptx"]


@triton_dist.jit
def my_rank(x):
    tl.store(x, dl.rank())


@triton_dist.jit
def only_waits(x):
    tl.store(x, dl.wait(x, 1, "gpu", "acquire"))


def test_no_library_where_none_is_called(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrappers, "make", lambda *given: pytest.fail("the library was asked for"))
    compiled(only_waits, "*i32")


def test_every_function_of_the_table_has_a_symbol() -> None:
    for record in records().values():
        for symbol in symbols.symbols_of(record.symbol("cuda")):
            assert symbol.startswith(("nvshmem_", "nvshmemx_")), symbol
            assert symbol in symbols.scopes()
    assert symbols.available("nvshmemi_transfer_put_signal_nbi_block") == "nvshmemx_putmem_signal_nbi_block"
    assert symbols.available("nvshmemi_transfer_rma_put") == "nvshmem_putmem"
    assert len(wrappers.all_functions()) > 120


# The hook


def test_an_earlier_hook_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def earlier(self=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "their key", "their hash"
        seen.append(list(stages))
        return None

    monkeypatch.setattr(hook, "_earlier", [earlier])
    target = SimpleNamespace(target=SimpleNamespace(backend="cuda"))
    stages = {"ttir": lambda module, metadata: module, "ttgir": None}
    hook.inspect_stages(target, stages, SimpleNamespace(extern_libs=()), None, 90)
    assert seen == [["ttir", "ttgir"]]
    key, value = hook.inspect_stages()
    assert key.endswith("their key")
    assert value.endswith("their hash")
    assert key.startswith(hook._key()[0])


def test_other_targets_are_not_touched() -> None:
    stages = {"ttir": lambda module, metadata: module}
    before = dict(stages)
    hook.inspect_stages(SimpleNamespace(target=SimpleNamespace(backend="cpu")), stages, None)
    assert stages == before


def test_the_key_follows_the_library(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hook._key.cache_clear()
    monkeypatch.setattr(library, "identity", lambda: "NVSHMEM 1")
    first = hook._key()
    hook._key.cache_clear()
    monkeypatch.setattr(library, "identity", lambda: "NVSHMEM 2")
    assert hook._key() != first
    hook._key.cache_clear()


def test_the_cache_of_triton_has_the_key(cuda: None) -> None:
    from triton.backends import backends
    from triton.compiler.compiler import make_backend

    if hook._asks_for_key():
        assert hook.inspect_stages() == hook._key()
    else:
        from tests.cuda.conftest import TARGET

        assert hook._key()[0] in make_backend(TARGET).hash()
    assert "nvidia" in backends


# Functions as inline assembly

LEAVES = """
@state = dso_local addrspace(4) externally_initialized global [4 x i64] zeroinitializer, align 8
@other = global i64 0
@llvm.compiler.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(4) @state to ptr)]
define ptr @branches(ptr %p, i32 %pe) {
  %size = load i64, ptr addrspace(4) @state, align 8
  %at = ptrtoint ptr %p to i64
  %in = icmp ult i64 %at, %size
  br i1 %in, label %there, label %end
there:
  %slot = getelementptr i64, ptr %p, i32 %pe
  %found = load ptr, ptr %slot, align 8
  br label %end
end:
  %r = phi ptr [ %found, %there ], [ null, %0 ]
  ret ptr %r
}
define ptr @calls(ptr %p, i32 %pe) {
  %r = call ptr @branches(ptr %p, i32 %pe)
  ret ptr %r
}
define ptr @asks(ptr %p, i32 %pe) {
  %t = call i32 asm "mov.u32 $0, %tid.x;", "=r"()
  %r = getelementptr i8, ptr %p, i32 %t
  ret ptr %r
}
define ptr @foreign(ptr %p, i32 %pe) {
  %r = load ptr, ptr @other, align 8
  ret ptr %r
}
define void @nothing(ptr %p, i32 %pe) {
  ret void
}
define float @floats(float %p, i32 %pe) {
  ret float %p
}
"""
"""Two of which can be: one with branches, and one that is straight and only of integers."""


@pytest.fixture
def leaves(tmp_path: Path) -> Pieces:
    path = tmp_path / "leaves.ll"
    path.write_text(LEAVES)
    return bitcode.pieces_of(path, ["branches"])


def test_a_function_as_one_inline_assembly(leaves: Pieces) -> None:
    made = assembled("branches", ("i64", "i32"), "i64", leaves, 90)
    assert made is not None
    assert made.startswith("define i64 @branches(i64 %a0, i32 %a1) alwaysinline nounwind {")
    assert made.count("asm") == made.count("ret i64 %r") == 1
    # Registers and labels are the block's own, operands are LLVM's.
    assert not re.search(r"%(?!a0|a1|r\b)|\$(?!\d)|ld\.param", made)
    assert "[state]" in made
    assert "bra BB0_" in made
    assert re.search(r"mov\.\w+ own_\w+, \$1; .*mov\.\w+ own_\w+, \$2; .*mov\.\w+ \$0, own_\w+; }", made)


@pytest.mark.parametrize("function", ["calls", "asks", "foreign", "nothing", "floats"])
def test_what_cannot_be_one_inline_assembly(leaves: Pieces, function: str) -> None:
    signature = leaves.signature(function)
    operands = [type.replace("ptr", "i64") for type in signature.parameters]
    assert assembled(function, operands, signature.result.replace("ptr", "i64"), leaves, 90) is None


def test_an_inline_assembly_is_called_as_declared(leaves: Pieces) -> None:
    assert assembled("branches", ("i32", "i32"), "i64", leaves, 90) is None
    assert assembled("branches", ("i64",), "i64", leaves, 90) is None


def test_a_kernel_has_nvshmem_ptr_as_inline_assembly(compiled: Compile) -> None:
    made = compiled(both, "*fp32", "i32")
    assert "call i64 asm" in made.asm["llir"]
    assert made.asm["ptx"].count("[nvshmemi_device_state_d+16]") == 2


def test_nvshmem_ptr_that_cannot_be_inline_assembly(compiled: Compile, tmp_path: Path) -> None:
    asked = "define dso_local noundef ptr @nvshmem_ptr(ptr noundef %0, i32 noundef %1) #0 {"
    text = STUB.read_text().replace(asked, asked.replace("nvshmem_ptr", "looked_up"))
    other = tmp_path / "other.ll"
    other.write_text(f"{text}\n{asked}\n  %r = call ptr @looked_up(ptr %0, i32 %1)\n  ret ptr %r\n}}\n")
    made = compiled(both_and_signal, "*fp32", "i32", "*i64", extern_libs={"libnvshmem_device": str(other)})
    assert "call i64 asm" not in made.asm["llir"]
    assert made.asm["ptx"].count("[nvshmemi_device_state_d+16]") >= 1
    assert count(made, "call") == 0
    assert count(made, "st.release") == 1


@triton_dist.language.builtin
def as_an_integer(x, pe, _semantic=None):
    table = {(tl.int64, tl.int32): ("nvshmem_ptr", tl.int64)}
    return dl.extern_call("libnvshmem_device", "", [x, pe], table, True, _semantic=_semantic)


@triton_dist.jit
def asked_both_ways(x, pe):
    tl.store(dl.symm_at(x, pe), as_an_integer(x.to(tl.int64), pe) * 1.0)


def test_nvshmem_ptr_called_as_the_library_declares_it(compiled: Compile) -> None:
    made = compiled(asked_both_ways, "*fp32", "i32")
    assert "call i64 asm" not in made.asm["llir"]
    assert count(made, "call") == 0


def test_a_notify_without_a_loop_is_one_call(compiled: Compile) -> None:
    made = compiled(both_and_signal, "*fp32", "i32", "*i64")
    assert made.asm["ttir"].count("tt.extern_elementwise") == 3
    assert "ptr_to_int" not in made.asm["ttir"]
    assert made.asm["ptx"].count("[nvshmemi_device_state_d+16]") == 3
    # Exactly: nothing is left of the division by the size of an element.
    assert count(made, r"shr\.|and\.b64") == 0


@triton_dist.jit
def both_and_signal(x, pe, flag):
    tl.store(dl.symm_at(x, pe), 1.0)
    tl.store(dl.symm_at(x, pe + 1), 2.0)
    dl.notify(flag, pe, signal=1)


@triton_dist.jit
def both(x, pe):
    tl.store(dl.symm_at(x, pe), 1.0)
    tl.store(dl.symm_at(x, pe + 1), 2.0)
