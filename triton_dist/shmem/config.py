# SPDX-License-Identifier: MIT
"""Who this PE is and how it finds the others: explicit values, else the environment that a launcher sets.

The variables are torchrun's, which `triton-dist run` sets too: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
MASTER_ADDR, MASTER_PORT. With none of them a script is a world of one PE.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from triton_dist import knobs
from triton_dist.errors import ShmemConfigError

LAUNCHERS = (
    "Start the script with `triton-dist run -n <PEs> script.py` or `torchrun --nproc-per-node <PEs> script.py`, "
    "or run it alone for one PE."
)


class Rendezvous(BaseModel):
    """Where the PEs meet: a torch TCPStore."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(ge=1, le=65535)
    hosted_by_launcher: bool = False
    """A launcher (torchrun's agent, or ours) runs the store's server; otherwise PE 0 does."""
    prefix: str = "0"
    """Keeps the keys of a restarted job apart from those of the job before."""


class ShmemConfig(BaseModel):
    """What `shmem.init` needs to know. Keyword arguments of `init` are these fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pe: int = Field(default=0, ge=0)
    n_pes: int = Field(default=1, ge=1, le=4096)
    pes_on_node: int | None = Field(default=None, ge=1)
    """How many of them run on this PE's node; None: all."""
    heap_size: int = Field(default_factory=lambda: knobs.heap_size, ge=4096)
    """Bytes that tensors can take on each PE; equal on all. Virtual memory until it is touched."""
    init_timeout: float = Field(default=120.0, gt=0)
    """Seconds that `init` waits for the others: processes may need long to start."""
    wait_timeout: float | None = Field(default=None, ge=0)
    """Seconds that a collective call or a host-side wait waits; None: TRITON_DIST_WAIT_TIMEOUT; 0: for ever."""
    fd_passing: Literal["auto", "proc", "socket"] = "auto"
    """How a process gets at its peers' memory; see `backends/cpu/heap.py`."""
    rendezvous: Rendezvous | None = None
    """Needed for more than one PE."""
    unique_id: bytes | None = None
    """In its place, for Ascend's library: what `aclshmem_get_unique_id` gave one PE, which gave it to all."""

    @model_validator(mode="after")
    def _fits(self) -> ShmemConfig:
        if self.pe >= self.n_pes:
            raise ValueError(f"pe = {self.pe}, but with n_pes = {self.n_pes} the last PE is {self.n_pes - 1}")
        return self

    def deadline_seconds(self) -> float:
        """The limit of one wait in seconds; 0: none. The knob is read late."""
        return knobs.wait_timeout if self.wait_timeout is None else self.wait_timeout


def resolve(environ: Mapping[str, str] | None = None, /, **given: Any) -> ShmemConfig:
    """The configuration from `given` and the environment; they must not contradict each other."""
    world = _world_of(os.environ if environ is None else environ)
    for field, variable in (("pe", "RANK"), ("n_pes", "WORLD_SIZE")):
        if field in given and field in world and given[field] != world[field]:
            raise ShmemConfigError(
                detail=f"{field} = {given[field]} was asked for, but the launcher set {variable}={world[field]}. "
                f"Leave {field} out, or start the script without a launcher."
            )
    return _validated({**world, **given})


def check_known(given: Iterable[str]) -> None:
    """Raise unless all are names of settings."""
    for name in given:
        if name not in ShmemConfig.model_fields:
            raise ShmemConfigError(detail=_unknown(name))


def _unknown(name: str) -> str:
    return f"there is no setting {name!r}; settings: {', '.join(ShmemConfig.model_fields)}"


def _validated(values: dict[str, Any]) -> ShmemConfig:
    try:
        config = ShmemConfig(**values)
    except ValidationError as error:
        problems = "; ".join(_problem(dict(e)) for e in error.errors())
        raise ShmemConfigError(detail=problems) from None
    if config.n_pes > 1 and config.rendezvous is None and config.unique_id is None:
        raise ShmemConfigError(
            detail=f"{config.n_pes} PEs need MASTER_ADDR and MASTER_PORT, which are not set. {LAUNCHERS}"
        )
    return config


def _problem(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return _unknown(where)
    return f"{where} = {error['input']!r}: {message}" if where else message


def _world_of(env: Mapping[str, str]) -> dict[str, Any]:
    if "RANK" not in env and "WORLD_SIZE" not in env:
        return {}
    for present, missing in (("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")):
        if missing not in env:
            raise ShmemConfigError(detail=f"{present}={env[present]} is set, but {missing} is not. {LAUNCHERS}")
    pe, n_pes = _number(env, "RANK"), _number(env, "WORLD_SIZE")
    if not 0 <= pe < n_pes:
        raise ShmemConfigError(detail=f"RANK={pe} and WORLD_SIZE={n_pes} contradict each other. {LAUNCHERS}")
    world = {"pe": pe, "n_pes": n_pes, "rendezvous": _rendezvous_of(env, n_pes)}
    local = _number(env, "LOCAL_WORLD_SIZE", n_pes)
    if local == n_pes and _number(env, "LOCAL_RANK", pe) != pe:
        raise ShmemConfigError(
            detail=f"LOCAL_RANK={env['LOCAL_RANK']} and RANK={pe} contradict each other on one node. {LAUNCHERS}"
        )
    return {**world, "pes_on_node": local}


def _rendezvous_of(env: Mapping[str, str], n_pes: int) -> Rendezvous | None:
    if "MASTER_ADDR" not in env and "MASTER_PORT" not in env and n_pes == 1:
        return None
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not env.get(name):
            raise ShmemConfigError(detail=f"RANK and WORLD_SIZE are set, but {name} is not. {LAUNCHERS}")
    port = _number(env, "MASTER_PORT")
    if not 1 <= port <= 65535:
        raise ShmemConfigError(detail=f"MASTER_PORT={port} is no port.")
    return Rendezvous(
        host=env["MASTER_ADDR"],
        port=port,
        hosted_by_launcher=env.get("TORCHELASTIC_USE_AGENT_STORE", "") == "True",
        prefix=env.get("TORCHELASTIC_RESTART_COUNT", "0"),
    )


def _number(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = env.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise ShmemConfigError(detail=f"{name}={text!r} is no whole number. {LAUNCHERS}") from None
