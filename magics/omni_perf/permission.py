"""Lets the sidecar read this process where Yama allows only ancestors to (scope 1).

PR_SET_PTRACER holds one value and cannot be read back, so it is only called after a
read was refused: it would overwrite a PR_SET_PTRACER_ANY set by the user. The grant is
per process; forked workers repeat it.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_PTRACER = 0x59616D61  # linux/prctl.h: "Yama"


def ptrace_scope() -> str:
    """Return Yama's setting, by which processes may be read; empty where there is none."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class Grant:
    """The permission given to one sidecar at a time, inherited by forked children."""

    def __init__(self) -> None:
        self._pid = 0
        self._prctl: ctypes._NamedFuncPointer | None = None  # pyright: ignore[reportPrivateUsage]
        self._forks_watched = False

    def give(self, pid: int) -> bool:
        """Let process pid read this one; False if the system knows no such permission."""
        if self._prctl is None:
            try:
                self._prctl = ctypes.CDLL(None).prctl
            except (OSError, AttributeError):
                return False
        self._pid = pid
        granted = self._grant()
        if granted and not self._forks_watched:
            os.register_at_fork(after_in_child=self._grant)
            self._forks_watched = True
        return granted

    def withdraw(self) -> None:
        """Stop handing the grant to forked children; the kernel forgets ours with the pid."""
        self._pid = 0

    def _grant(self) -> bool:
        if self._pid == 0 or self._prctl is None:
            return False
        unsigned = ctypes.c_ulong
        return self._prctl(_PR_SET_PTRACER, unsigned(self._pid), unsigned(0), unsigned(0), unsigned(0)) == 0
