"""Sends to many sockets in one call, without Python's lock."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from ivm.kernels.cache import kernel

_send = types.ExternalFunction("send", types.int64(types.int32, types.uintp, types.uintp, types.int32))
"""The C library's."""


@kernel
def send_all(parts: NDArray[np.int64], sent: NDArray[np.int64]) -> None:
    """Sends each part, (file, address, bytes), to a socket that does not block. ``sent``: how many bytes it has taken;
    -1: none, for whatever reason."""
    for i in range(parts.shape[0]):
        sent[i] = _send(np.int32(parts[i, 0]), np.uint64(parts[i, 1]), np.uint64(parts[i, 2]), np.int32(0))  # type: ignore[call-overload]
