# SPDX-License-Identifier: MIT
"""`language_extra` of this back end. So far each function says that this version does not have it."""

from triton_dist.language.extra.language_extra import declare_pending

BACKEND = "cuda"

declare_pending(BACKEND, globals())
