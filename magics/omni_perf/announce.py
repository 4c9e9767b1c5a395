"""What the thread of a cell says to the sidecar itself: that the cell begins, or that it is over.

Calls are made in the loop's thread, which needs the GIL, and code may keep that from its first call to its last: such
a cell would be over before the call that begins its recording. A datagram needs no other thread and no answer, so the
cell waits for nothing. The socket is made anew for each: a cell may close all descriptors.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omni_perf.launcher import Endpoint

SOCKET = "c"
"""Its name in the sidecar's folder."""

LIMIT = 64 << 10
"""Bytes of a datagram; a larger cell is recorded from when the call comes."""


def begins(endpoint: Endpoint, request: Mapping[str, Any], delay_s: float) -> None:
    """Have a cell recorded that begins now, after a delay and unless the call to begin it comes first."""
    _send(endpoint, {"begin": request, "delay_ns": int(delay_s * 1e9)})


def is_over(endpoint: Endpoint, cell_id: str) -> None:
    """Have a cell recorded no longer that is over, and whose end is called later."""
    _send(endpoint, {"over": cell_id})


def _send(endpoint: Endpoint, said: Mapping[str, Any]) -> None:
    text = json.dumps({"token": endpoint.token, **said}).encode()
    if len(text) > LIMIT:
        return
    folder = os.path.dirname(endpoint.socket)
    path = os.path.join(folder, SOCKET)
    try:
        if os.lstat(folder).st_uid != os.geteuid():  # the sidecar has ended: another user has made one of this name
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            sender.sendto(text, path)
    except OSError:  # no descriptor is left, or the sidecar does not read: the call does it
        pass
