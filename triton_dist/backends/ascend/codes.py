# SPDX-License-Identifier: MIT
"""aclshmem's return codes, and the exceptions they become."""

from __future__ import annotations

from triton_dist.errors import AclshmemFailed

OK, INVALID_PARAM, INVALID_VALUE, SMEM, INNER, NOT_INITED, BOOTSTRAP, TIMEOUT, MALLOC, DL_FUNC = range(0, -10, -1)
INNER_TIMEOUT, UNDER_API_UNLOAD, UNSUPPORTED = -10, -11, -100

MEANINGS = {
    INVALID_PARAM: "a parameter is invalid",
    INVALID_VALUE: "a value is out of its range",
    SMEM: "the shared-memory layer failed",
    INNER: "an inner error; a second init gives it too",
    NOT_INITED: "the library is not initialised",
    BOOTSTRAP: "the PEs did not find each other",
    TIMEOUT: "a peer did not come in time",
    MALLOC: "no memory",
    DL_FUNC: "a function of a library that it loads is missing",
    INNER_TIMEOUT: "an inner call took too long",
    UNDER_API_UNLOAD: "a library that it needs is unloaded",
    UNSUPPORTED: "this is not supported here",
}
"""Code -> what it says."""

MAX_PES = 16384
MAX_LOCAL_BYTES = 40 << 30
EXTRA_BYTES = 6 << 20
"""What the library adds to the local size for its own use."""


def check(call: str, code: int) -> None:
    """Raise if `call` returned an error."""
    if code != OK:
        raise AclshmemFailed(call=call, code=code, meaning=MEANINGS.get(code, "an unknown code"))
