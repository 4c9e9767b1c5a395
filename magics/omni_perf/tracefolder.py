"""Private folders for torch's traces, and the removal of those whose kernel was killed.

A kernel that lives holds a lock on its folder, as sidecars do on theirs: process ids begin anew in each container,
and are given again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile

_PREFIX = "omni_perf-torch-"
_NAME = re.compile(re.escape(_PREFIX) + r"\d+-\w+")
"""With the process's id, which those have not that earlier versions made and did not lock."""

_ATTEMPTS = 3


def make() -> tuple[str, int]:
    """Make a folder; return it and the descriptor that holds its lock, which is -1 where there are no locks."""
    path = ""
    for _ in range(_ATTEMPTS):
        path = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        lock = _lock(path)
        if lock >= 0 and os.path.isdir(path):
            return path, lock
        if lock >= 0:  # another kernel took it for abandoned before it was locked
            os.close(lock)
    os.makedirs(path, 0o700, exist_ok=True)
    return path, -1


def sweep(parent: str) -> None:
    """Remove what killed kernels have left in a folder: only what is ours, private and locked by nobody."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in filter(_NAME.fullmatch, names):
        path = os.path.join(parent, name)
        if _is_ours(path) and (lock := _lock(path)) >= 0:
            try:
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _is_ours(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_mode == stat.S_IFDIR | 0o700 and found.st_uid == os.geteuid()


def _lock(path: str) -> int:
    """Return the descriptor that locks a folder against its removal; -1 where another process does, or none can."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor
