# SPDX-License-Identifier: MIT
"""What the driver is called with when a kernel is launched again. (The driver itself: benchmarks/h200.)"""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

import pytest

from triton_dist.backends.cuda.relaunch import KernelNode, relaunch
from triton_dist.errors import NvshmemError


class Driver:
    """As libcuda: knows the sizes of a kernel's parameters, and notes what is launched with them."""

    def __init__(self, *sizes: int, status: int = 0) -> None:
        self.sizes, self.status = sizes, status
        self.launches: list[tuple[Any, ...]] = []
        self.made = self.set = self.destroyed = 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = 400
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        self.status = 0 if context.value == 400 else 1
        return 0

    def cuFuncGetParamInfo(self, function: Any, index: Any, offset: Any, size: Any) -> int:
        if index.value >= len(self.sizes):
            return 1
        size._obj.value = self.sizes[index.value]
        return 0

    def raw(self, pointers: Any) -> list[bytes]:
        return [ctypes.string_at(at, size) for at, size in zip(pointers, self.sizes, strict=True)]

    def cuLaunchKernel(self, function: Any, *more: Any) -> int:
        *sizes, stream, pointers, extra = more
        assert extra is None
        self.launches.append(("kernel", function.value, [s.value for s in sizes], stream.value, self.raw(pointers)))
        return self.status

    def cuGraphCreate(self, graph: Any, flags: int) -> int:
        self.made += 1
        graph._obj.value = 100
        return flags

    def cuGraphAddKernelNode_v2(self, place: Any, graph: Any, before: Any, how_many: int, node: Any) -> int:
        assert (graph.value, before, how_many) == (100, None, 0)
        place._obj.value = 200
        self.read(node._obj)
        return 0

    def cuGraphInstantiateWithFlags(self, run: Any, graph: Any, flags: Any) -> int:
        assert (graph.value, flags.value) == (100, 0)
        run._obj.value = 300
        return 0

    def cuGraphExecKernelNodeSetParams_v2(self, run: Any, place: Any, node: Any) -> int:
        assert (run.value, place.value) == (300, 200)
        self.set += 1
        self.read(node._obj)
        return 0

    def read(self, node: KernelNode) -> None:
        """As the driver does: the parameters are copied now."""
        names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")
        pointers = (ctypes.c_void_p * len(self.sizes)).from_address(node.kernelParams)
        assert not node.extra
        self.node = node.func, [getattr(node, name) for name in names], self.raw(pointers)

    def cuGraphLaunch(self, run: Any, stream: Any) -> int:
        assert run.value == 300
        function, sizes, raw = self.node
        self.launches.append(("graph", function, sizes, stream.value, raw))
        return self.status

    def cuGraphExecDestroy(self, run: Any) -> int:
        self.destroyed += run.value == 300
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        self.destroyed += graph.value == 100
        return 0

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"no luck"
        return 0


def compiled(signature: dict[str, Any], **metadata: Any) -> Any:
    plain = {
        "num_ctas": 1, "num_warps": 4, "shared": 48, "launch_cooperative_grid": False, "launch_pdl": False,
        "global_scratch_size": 0, "profile_scratch_size": 0,
    }  # fmt: skip
    return SimpleNamespace(
        src=SimpleNamespace(signature=signature),
        metadata=SimpleNamespace(**{**plain, **metadata}),
        function=77,
        name="k",
    )


SIGNATURE = {"a": "*bf16", "n": "i32", "one": "constexpr", "big": "i64", "x": "fp32", "b": "*i64", "KIND": "constexpr"}
VALUES = [None, -5, 1, 1 << 40, 1.5, 4096, object()]
SIZES = (8, 4, 8, 4, 8, 8, 8)


FIXED = [(-5).to_bytes(4, "little", signed=True), (1 << 40).to_bytes(8, "little"), bytes(ctypes.c_float(1.5))]
AFTER = [(4096).to_bytes(8, "little"), bytes(8), bytes(8)]
GRID = [3, 1, 1, 128, 1, 1, 48]


def parameters(address: int) -> list[bytes]:
    return [address.to_bytes(8, "little"), *FIXED, *AFTER]


def made(driver: Any, capturing: bool = False, **metadata: Any) -> Any:
    return relaunch(compiled(SIGNATURE, **metadata), 3, VALUES, [0], driver, lambda: capturing)


def test_a_graph_is_made_once_and_changed_when_an_address_does() -> None:
    driver = Driver(*SIZES)
    launch = made(driver)
    high = (1 << 63) + 16
    for stream, address in ((9, 256), (0, 256), (9, high), (9, high), (9, 256)):
        launch(stream, [address])
    assert driver.launches == [
        ("graph", 77, GRID, stream, parameters(address))
        for stream, address in ((9, 256), (None, 256), (9, high), (9, high), (9, 256))
    ]
    assert (driver.made, driver.set) == (1, 2)
    del launch
    gc.collect()
    assert driver.destroyed == 2


def test_what_is_recorded_is_the_kernel_itself() -> None:
    driver, recording = Driver(*SIZES), [False]
    launch = relaunch(compiled(SIGNATURE), 3, VALUES, [0], driver, lambda: recording[0])
    assert launch is not None
    launch(9, [256])
    recording[0] = True
    launch(9, [512])
    recording[0] = False
    launch(9, [256])
    launch(9, [512])
    assert driver.launches == [
        (how, 77, GRID, 9, parameters(address))
        for how, address in (("graph", 256), ("kernel", 512), ("graph", 256), ("graph", 512))
    ]


@pytest.mark.parametrize("sizes", [SIZES[:-1], (*SIZES, 8), (8, 8, *SIZES[2:])], ids=["fewer", "more", "wider"])
def test_other_parameters_than_these_are_left_to_triton(sizes: tuple[int, ...]) -> None:
    assert made(Driver(*sizes)) is None


@pytest.mark.parametrize("more", [{"num_ctas": 2}, {"launch_pdl": True}, {"global_scratch_size": 64}], ids=str)
def test_other_launches_than_plain_ones_are_left_to_triton(more: dict[str, Any]) -> None:
    assert made(Driver(*SIZES), **more) is None


@pytest.mark.parametrize("kind", ["fp16", "tensordesc<fp16[8, 8]>", ("i32", "i32")], ids=str)
def test_what_triton_packs_is_left_to_it(kind: Any) -> None:
    kernel = compiled({**SIGNATURE, "x": kind})
    assert relaunch(kernel, 3, VALUES, [0], Driver(*SIZES), lambda: False) is None


def test_a_driver_that_does_not_know_the_parameters() -> None:
    assert made(object()) is None


def test_a_thread_without_a_context_gets_the_kernels() -> None:
    driver = Driver(*SIZES)
    launch = made(driver)
    launch(9, [256])
    driver.status = 201
    launch(9, [256])
    assert driver.status == 0
    assert driver.launches[-1] == ("graph", 77, GRID, 9, parameters(256))


@pytest.mark.parametrize("capturing", [False, True])
def test_a_launch_that_fails_says_why(capturing: bool) -> None:
    launch = made(Driver(*SIZES, status=700), capturing)
    with pytest.raises(NvshmemError, match="Launching k: CUDA says: no luck"):
        launch(0, [16])
