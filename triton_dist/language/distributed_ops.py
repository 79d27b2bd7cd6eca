# SPDX-License-Identifier: MIT
"""The seven ops a kernel is written with. Names and arguments are those of existing Triton-distributed kernels."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist import backends
from triton_dist.errors import BadExternCall
from triton_dist.language import checks
from triton_dist.language.builder import COMM_SCOPES, SCOPES, SEMANTICS, SIGNAL_OPS
from triton_dist.language.builtin import builtin, op_builder
from triton_dist.language.descriptor import ConsumedDescriptor


@builtin
def wait(
    barrierPtrs: Any,
    numBarriers: Any,
    scope: Any,
    semantic: Any,
    waitValue: Any = 1,
    _semantic: Any = None,
) -> tl.tensor:
    """Spin until each of `numBarriers` signals equals `waitValue`; return a token.

    Only reads: the signals keep their values, and several programs may wait on one.

    Args:
        barrierPtrs: scalar pointer to the first signal, in this PE's memory.
        numBarriers: how many consecutive signals, an integer (0: none, no wait; below 0: an error on the host).
        scope: who writes the signals: "cta" (this program), "gpu" (this device), "sys" (any device).
        semantic: "acquire" (what the signalling PE wrote before is visible after), "relaxed", "release", "acq_rel".
            A load cannot release: back ends treat the last two as "acquire".
        waitValue: the value to wait for; it takes the pointee's type and must fit it.

    Returns:
        A token, an int32 scalar. Give it to `dl.consume_token` with the pointer that the awaited data is read
        through: only that ties the reads to the wait. The token's value means nothing.

    Memory order: an acquire load of each signal at `scope`.

    Per back end: on the host, signals of 8 to 64 bits; on cuda, hip and maca, 32 or 64 bits. Consecutive signals
    are one element apart, on ascend 64 bytes: a portable kernel waits with `dl.wait_slots`. On the host a wait ends
    with an error after TRITON_DIST_WAIT_TIMEOUT seconds.

    Example:
        token = dl.wait(flags + src, 1, "sys", "acquire", waitValue=1)
        data = dl.consume_token(data, token)
        x = tl.load(data + offsets)
    """
    op = "dl.wait"
    ptr = checks.scalar_pointer(op, "barrierPtrs", barrierPtrs)
    type_ = checks.signal_type(op, "barrierPtrs", ptr, backends.active().limits.wait_dtypes)
    number = checks.count(op, "numBarriers", numBarriers, tl.int32, _semantic)
    scope_number = checks.choice(op, "scope", scope, SCOPES)
    semantic_number = checks.choice(op, "semantic", semantic, SEMANTICS)
    value = checks.fits(op, "waitValue", waitValue, type_, type_, _semantic)
    handle = op_builder(_semantic).create_distributed_wait(
        ptr.handle, number.handle, value.handle, scope_number, semantic_number
    )
    return tl.tensor(handle, tl.int32)


@builtin
def consume_token(value: Any, token: Any, _semantic: Any = None) -> Any:
    """Return `value`, made to depend on the wait that gave `token`.

    What is loaded through the result is loaded after the wait. Loads through other pointers may be moved before it,
    by software pipelining above all. It costs nothing at run time.

    Args:
        value: a scalar, a pointer, a block of either, or a tensor descriptor; most often a base pointer.
        token: what `dl.wait` returned.

    Returns:
        The same value, of the same type. Of a tensor descriptor: one whose `load` and `gather` depend on the token.
        It has a type of its own: where a branch or a loop would make it of a plain one, give it another name.

    Memory order: none of its own; the wait has it.

    Per back end: a block of values (not pointers) has no form on ascend; consume the base pointer instead.

    Example:
        ptr = dl.consume_token(ptr, dl.wait(flag, 1, "sys", "acquire"))
    """
    op = "dl.consume_token"
    tok = checks.token(op, token)
    if isinstance(value, checks.DESCRIPTORS):
        return ConsumedDescriptor.of(value, tok, _semantic)
    tensor = _semantic.to_tensor(value)
    handle = op_builder(_semantic).create_distributed_consume_token(tensor.handle, tok.handle)
    return tl.tensor(handle, tensor.type)


@builtin
def rank(axis: Any = -1, _semantic: Any = None) -> tl.tensor:
    """The number of this PE, from 0: an int32 scalar, the same in all programs of a launch.

    Args:
        axis: -1 or 0; both mean the whole world, which has one dimension.

    Memory order: none; a pure function, which loops may hoist.

    Example:
        right = (dl.rank() + 1) % dl.num_ranks()
    """
    handle = op_builder(_semantic).create_distributed_get_rank(checks.axis("dl.rank", axis))
    return tl.tensor(handle, tl.int32)


@builtin
def num_ranks(axis: Any = -1, _semantic: Any = None) -> tl.tensor:
    """The number of PEs: an int32 scalar.

    Args:
        axis: -1 or 0; both mean the whole world, which has one dimension.

    Memory order: none; a pure function, which loops may hoist.

    Example:
        for peer in range(dl.num_ranks()):
            ...
    """
    handle = op_builder(_semantic).create_distributed_get_num_ranks(checks.axis("dl.num_ranks", axis))
    return tl.tensor(handle, tl.int32)


@builtin
def symm_at(ptr: Any, rank: Any, _semantic: Any = None) -> tl.tensor:
    """The address on PE `rank` of what `ptr` is on this PE.

    Args:
        ptr: scalar pointer into the symmetric heap of this PE (of a tensor that `shmem.create_tensor` made).
        rank: the PE, an int32 scalar.

    Returns:
        A pointer of the same type, to load from and store to.

    Memory order: none; loads and stores through the result have their own. A pure function: where `ptr` and `rank` do
    not change in a loop it may be computed before it, even if the loop then never runs. So `rank` has to be a PE
    there is whether the address is used or not.

    Per back end: on GPUs the result is null if the peer is not reachable by loads and stores (another node without a
    direct path): use `libshmem_device.putmem` and `getmem` there. On the host a PE out of range or a pointer
    outside the heap ends the kernel with an error.

    Example:
        peer = dl.symm_at(buffer, (dl.rank() + 1) % dl.num_ranks())
        tl.store(peer + offsets, x)
    """
    op = "dl.symm_at"
    pointer = checks.scalar_pointer(op, "ptr", ptr)
    pe = checks.rank(op, "rank", rank, _semantic)
    handle = op_builder(_semantic).create_distributed_symm_at(pointer.handle, pe.handle)
    return tl.tensor(handle, pointer.type)


@builtin
def notify(
    ptr: Any, rank: Any, signal: Any = 1, sig_op: Any = "set", comm_scope: Any = "inter_node", _semantic: Any = None
) -> tl.tensor:
    """Update a signal on PE `rank`, after all that this program wrote before.

    Args:
        ptr: scalar pointer to the signal in this PE's memory; the signal at the same place of PE `rank` is
            updated. With `comm_scope="gpu"` the signal at `ptr` itself is.
        rank: the PE, an int32 scalar.
        signal: the value, an integer that fits the signal.
        sig_op: "set" (store it) or "add" (add it, atomically).
        comm_scope: how far the PE is: "gpu" (this device), "intra_node", "inter_node" (anywhere; always right).

    Returns:
        Nothing.

    Memory order: release, at the scope named: a PE that waits for the new value with "acquire" sees what this
    program wrote before, also to other PEs.

    Per back end: int32, int64 and uint64 signals on the host; on cuda, hip and maca int64 and uint64; on ascend
    int32, and int64 and uint64 with "set" only. On ascend no scope is looked at: the signal on PE `rank` is updated.

    Example:
        tl.store(dl.symm_at(buffer, peer) + offsets, x)
        dl.notify(flags + dl.rank(), peer, signal=1, sig_op="set")
    """
    op = "dl.notify"
    pointer = checks.scalar_pointer(op, "ptr", ptr, writes=True)
    type_ = checks.signal_type(op, "ptr", pointer, backends.active().limits.signal_ops)
    pe = checks.rank(op, "rank", rank, _semantic)
    op_number = checks.choice(op, "sig_op", sig_op, SIGNAL_OPS)
    checks.signal_op(op, type_, checks.unwrap(sig_op))
    scope_number = checks.choice(op, "comm_scope", comm_scope, COMM_SCOPES)
    wide = tl.uint64 if type_.is_int_unsigned() else tl.int64
    value = checks.fits(op, "signal", signal, type_, wide, _semantic)
    handle = op_builder(_semantic).create_distributed_notify(
        pointer.handle, value.handle, pe.handle, op_number, scope_number, type_
    )
    return tl.tensor(handle, tl.void)


@builtin
def extern_call(
    lib_name: Any, lib_path: Any, args: Any, arg_type_symbol_dict: Any, is_pure: Any, _semantic: Any = None
) -> Any:
    """Call a function of a device library by its symbol.

    The arguments are those of Triton's `extern_elementwise`, but each argument keeps its own type and shape:
    nothing is broadcast.

    Args:
        lib_name, lib_path: the library, as the back end's linker names it.
        args: the arguments: a list of scalars, pointers, blocks.
        arg_type_symbol_dict: {(type of each argument, ...): (symbol, type of the result)}, or a list of such
            pairs, since Triton's pointer types cannot be keys of a dict. The result's type is a dtype, or tl.void
            or () for none. The types must be those of the arguments; Python numbers are int32 or float32.
        is_pure: whether equal arguments give equal results, with no effect on memory.

    Returns:
        The result, or nothing.

    Memory order: with `is_pure=False`, no load, store or other call is moved across it.

    Per back end: the symbol must exist in a library of the back end; on the host in its template library.

    Example:
        @triton_dist.language.builtin
        def my_pe(_semantic=None):
            return dl.extern_call("host_shmem", "", [], {(): ("host_shmem_my_pe", tl.int32)}, True,
            _semantic=_semantic)
    """
    op = "dl.extern_call"
    library, path = checks.text(op, "lib_name", lib_name), checks.text(op, "lib_path", lib_path)
    pure = checks.flag(op, "is_pure", is_pure)
    operands = _operands(op, args, _semantic)
    symbol, result = _resolve(op, operands, checks.unwrap(arg_type_symbol_dict))
    if any(isinstance(x.type, tl.block_type) for x in operands) and not isinstance(result, tl.block_type):
        raise BadExternCall(op=op, detail="a block among the arguments needs a block as the result")
    handle = op_builder(_semantic).create_distributed_extern_call(
        library, path, symbol, [x.handle for x in operands], result, pure
    )
    return tl.tensor(handle, tl.void if result is None else result)


def _operands(op: str, args: Any, semantic: Any) -> list[tl.tensor]:
    values = checks.unwrap(args)
    if not isinstance(values, (list, tuple, tl.tuple)):
        raise BadExternCall(op=op, detail=f"args must be a list, got {checks.describe(args)}")
    for value in values:
        if not isinstance(value, tl.tensor) and not isinstance(checks.unwrap(value), (bool, int, float)):
            raise BadExternCall(op=op, detail=f"cannot pass {checks.describe(value)} to a library function")
    return [semantic.to_tensor(value) for value in values]


def _resolve(op: str, operands: list[tl.tensor], table: Any) -> tuple[str, tl.dtype | None]:
    pairs = list(table.items()) if isinstance(table, dict) else table
    if not isinstance(pairs, (list, tuple)) or not pairs:
        raise BadExternCall(op=op, detail="arg_type_symbol_dict must map argument types to (symbol, result type)")
    types = tuple(x.dtype for x in operands)
    for known, (symbol, result) in pairs:
        if tuple(known) == types:
            if not isinstance(symbol, str) or not symbol:
                raise BadExternCall(op=op, detail=f"the symbol must be a string, got {symbol!r}")
            return symbol, _result_type(op, result)
    known = "; ".join(f"({', '.join(map(str, key))})" for key, _ in pairs)
    given = ", ".join(map(str, types))
    raise BadExternCall(op=op, detail=f"no symbol for arguments of types ({given}). Known: {known}.")


def _result_type(op: str, result: Any) -> tl.dtype | None:
    if isinstance(result, (list, tuple)):
        if len(result) > 1:
            raise BadExternCall(op=op, detail=f"a call has one result at most, got {len(result)}")
        result = result[0] if result else None
    if result is None or result == tl.void:
        return None
    if not isinstance(result, tl.dtype):
        raise BadExternCall(op=op, detail=f"the result's type must be a dtype, tl.void or (), got {result!r}")
    return result
