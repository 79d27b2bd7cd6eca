# SPDX-License-Identifier: MIT
# Generated from libshmem_device.csv by records.stub(); a test compares them.
# ruff: noqa: E501
# fmt: off
from typing import Any

from triton.language import constexpr

from triton_dist.language.extra.dispatch import ActiveModule

active_module: ActiveModule
SIGNAL_SET: constexpr
NVSHMEM_SIGNAL_SET: constexpr
SIGNAL_ADD: constexpr
NVSHMEM_SIGNAL_ADD: constexpr
CMP_EQ: constexpr
NVSHMEM_CMP_EQ: constexpr
CMP_NE: constexpr
NVSHMEM_CMP_NE: constexpr
CMP_GT: constexpr
NVSHMEM_CMP_GT: constexpr
CMP_LE: constexpr
NVSHMEM_CMP_LE: constexpr
CMP_LT: constexpr
NVSHMEM_CMP_LT: constexpr
CMP_GE: constexpr
NVSHMEM_CMP_GE: constexpr
TEAM_INVALID: constexpr
NVSHMEM_TEAM_INVALID: constexpr
TEAM_WORLD: constexpr
NVSHMEM_TEAM_WORLD: constexpr
TEAM_SHARED: constexpr
NVSHMEM_TEAM_SHARED: constexpr
TEAM_NODE: constexpr
NVSHMEMX_TEAM_NODE: constexpr
TEAM_SAME_MYPE_NODE: constexpr
NVSHMEMX_TEAM_SAME_MYPE_NODE: constexpr
TEAM_SAME_GPU: constexpr
NVSHMEMI_TEAM_SAME_GPU: constexpr
TEAM_GPU_LEADERS: constexpr
NVSHMEMI_TEAM_GPU_LEADERS: constexpr
def set_rocshmem_ctx(ctx: Any) -> None:
    """write ctx_opaque of the device default context (rocSHMEM only)"""
def my_pe() -> Any:
    """rank of this PE in the world team"""
def n_pes() -> Any:
    """size of the world team"""
def team_my_pe(team: Any) -> Any:
    """rank inside a team; -1 when not a member"""
def team_n_pes(team: Any) -> Any:
    """size of a team"""
def int_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one int32 at dest on pe; single writer"""
def remote_ptr(local_ptr: Any, pe: Any) -> Any:
    """peer address of a symmetric address; null when not load/store reachable"""
def remote_mc_ptr(team: Any, ptr: Any) -> Any:
    """NVLink multicast address of a symmetric address for a team"""
def barrier_all() -> None:
    """barrier of all PEs, completes puts"""
def barrier_all_vec() -> None:
    """barrier of all PEs, vector cores only (Ascend)"""
def barrier_all_block() -> None:
    """barrier of all PEs, completes puts"""
def barrier_all_warp() -> None:
    """barrier of all PEs, completes puts"""
def barrier_all_wave() -> None:
    """barrier of all PEs, completes puts"""
def barrier_all_wg() -> None:
    """barrier of all PEs, completes puts"""
def barrier(team: Any) -> Any:
    """barrier of a team, completes puts"""
def barrier_block(team: Any) -> Any:
    """barrier of a team, completes puts"""
def barrier_warp(team: Any) -> Any:
    """barrier of a team, completes puts"""
def sync_all() -> None:
    """barrier of all PEs for control only, no put completion"""
def sync_all_block() -> None:
    """barrier of all PEs for control only, no put completion"""
def sync_all_warp() -> None:
    """barrier of all PEs for control only, no put completion"""
def team_sync_block(team: Any) -> Any:
    """team barrier for control only"""
def team_sync_warp(team: Any) -> Any:
    """team barrier for control only"""
def quiet() -> None:
    """wait for completion of all own puts/atomics"""
def quiet_pe(pe: Any) -> None:
    """complete own operations to one pe (mori; takes pe)"""
def fence() -> None:
    """order own puts per target PE"""
def getmem_nbi_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte get from source on pe to local dest"""
def getmem_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte get from source on pe to local dest"""
def getmem_nbi_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte get from source on pe to local dest"""
def getmem_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte get from source on pe to local dest"""
def getmem_nbi(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte get from source on pe to local dest"""
def getmem_nbi_wave(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte get from source on pe to local dest"""
def getmem_nbi_wg(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte get from source on pe to local dest"""
def getmem(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte get from source on pe to local dest"""
def getmem_wave(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte get from source on pe to local dest"""
def getmem_wg(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte get from source on pe to local dest"""
def putmem_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte put local source to dest on pe"""
def putmem_nbi_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte put local source to dest on pe"""
def putmem_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte put local source to dest on pe"""
def putmem_nbi_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte put local source to dest on pe"""
def putmem(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte put local source to dest on pe"""
def putmem_wave(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte put local source to dest on pe"""
def putmem_wg(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking byte put local source to dest on pe"""
def putmem_nbi(dest: Any, source: Any, bytes: Any, pe: Any, qp_id: Any = 0) -> None:
    """non-blocking byte put local source to dest on pe"""
def putmem_nbi_wave(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte put local source to dest on pe"""
def putmem_nbi_wg(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking byte put local source to dest on pe"""
def putmem_signal_nbi(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking byte put then signal update at the same pe"""
def putmem_signal(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking byte put then signal update at the same pe"""
def putmem_signal_nbi_block(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any, qp_id: Any = 0) -> None:
    """non-blocking byte put then signal update at the same pe"""
def putmem_signal_block(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking byte put then signal update at the same pe"""
def putmem_signal_nbi_warp(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking byte put then signal update at the same pe"""
def putmem_signal_warp(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking byte put then signal update at the same pe"""
def putmem_signal_wave(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking byte put then signal update at the same pe"""
def putmem_signal_wg(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking byte put then signal update at the same pe"""
def putmem_signal_nbi_wave(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking byte put then signal update at the same pe"""
def putmem_signal_nbi_wg(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking byte put then signal update at the same pe"""
def signal_op(sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """set a signal at sig_addr on pe or add to it"""
def signal_wait_until(sig_addr: Any, cmp_: Any, cmp_val: Any) -> Any:
    """spin until the own signal *sig_addr cmp_ cmp_val holds; gives its value"""
def uint64_wait_until_equals(addr: Any, val: Any) -> None:
    """spin until *addr equals val"""
def ulong_put_signal(dest: Any, source: Any, nelems: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """put nelems uint64 then update signal"""
def broadcastmem(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """byte broadcast from pe_root in team (nelems = bytes)"""
def broadcastmem_warp(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """byte broadcast from pe_root in team (nelems = bytes)"""
def broadcastmem_block(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """byte broadcast from pe_root in team (nelems = bytes)"""
def broadcast(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """typed broadcast from pe_root in team"""
def broadcast_warp(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """typed broadcast from pe_root in team"""
def broadcast_block(team: Any, dest: Any, source: Any, nelems: Any, pe_root: Any) -> Any:
    """typed broadcast from pe_root in team"""
def fcollectmem(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """byte all-gather in team (nelems = bytes per PE)"""
def fcollectmem_warp(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """byte all-gather in team (nelems = bytes per PE)"""
def fcollectmem_block(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """byte all-gather in team (nelems = bytes per PE)"""
def fcollect(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """typed all-gather in team"""
def fcollect_warp(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """typed all-gather in team"""
def fcollect_block(team: Any, dest: Any, source: Any, nelems: Any) -> Any:
    """typed all-gather in team"""
def putmem_rma(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking put forced onto the network path"""
def putmem_rma_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking put forced onto the network path"""
def putmem_rma_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """blocking put forced onto the network path"""
def putmem_rma_nbi(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking put forced onto the network path"""
def putmem_rma_nbi_block(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking put forced onto the network path"""
def putmem_rma_nbi_warp(dest: Any, source: Any, bytes: Any, pe: Any) -> None:
    """non-blocking put forced onto the network path"""
def putmem_signal_rma(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking put plus signal forced onto the network path"""
def putmem_signal_rma_nbi(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking put plus signal forced onto the network path"""
def putmem_signal_rma_warp(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking put plus signal forced onto the network path"""
def putmem_signal_rma_nbi_warp(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking put plus signal forced onto the network path"""
def putmem_signal_rma_block(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """blocking put plus signal forced onto the network path"""
def putmem_signal_rma_nbi_block(dest: Any, source: Any, bytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """non-blocking put plus signal forced onto the network path"""
def team_translate_pe(src_team: Any, pe_in_src_team: Any, dest_team: Any) -> Any:
    """map a rank of one team to another team"""
def sync(team: Any) -> Any:
    """team synchronisation without completing puts"""
def quiet_pe_qp(pe: Any, qp_id: Any) -> None:
    """complete own operations to one pe on one queue pair"""
def fence_pe(pe: Any) -> None:
    """order own puts to one pe"""
def fence_pe_qp(pe: Any, qp_id: Any) -> None:
    """order own puts to one pe on one queue pair"""
def float_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one float at dest on pe; single writer"""
def double_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one double at dest on pe; single writer"""
def char_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one char at dest on pe; single writer"""
def short_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one short at dest on pe; single writer"""
def uint_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one uint at dest on pe; single writer"""
def ulong_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one ulong at dest on pe; single writer"""
def int32_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one int32 at dest on pe; single writer"""
def int64_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one int64 at dest on pe; single writer"""
def uint32_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one uint32 at dest on pe; single writer"""
def uint64_p(dest: Any, value: Any, pe: Any, qp_id: Any = 0) -> None:
    """store one uint64 at dest on pe; single writer"""
def atomic_add_uint64(dest: Any, val: Any, pe: Any, qp_id: Any = 0) -> None:
    """remote atomic add without result"""
def atomic_fetch_add_uint64(dest: Any, val: Any, pe: Any, qp_id: Any = 0) -> Any:
    """remote atomic add, old value returned"""
def atomic_add_int64(dest: Any, val: Any, pe: Any, qp_id: Any = 0) -> None:
    """remote atomic add without result"""
def atomic_fetch_add_int64(dest: Any, val: Any, pe: Any, qp_id: Any = 0) -> Any:
    """remote atomic add, old value returned"""
def int32_wait_until_equals(addr: Any, val: Any) -> None:
    """spin until *addr equals val"""
def int32_wait_until_greater_than(addr: Any, val: Any) -> None:
    """spin until *addr is above val"""
def int64_wait_until_equals(addr: Any, val: Any) -> None:
    """spin until *addr equals val"""
def int64_wait_until_greater_than(addr: Any, val: Any) -> None:
    """spin until *addr is above val"""
def uint32_wait_until_equals(addr: Any, val: Any) -> None:
    """spin until *addr equals val"""
def uint32_wait_until_greater_than(addr: Any, val: Any) -> None:
    """spin until *addr is above val"""
def uint64_wait_until_greater_than(addr: Any, val: Any) -> None:
    """spin until *addr is above val"""
