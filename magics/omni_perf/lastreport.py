"""What the sidecar of a kernel that died has left for the next kernel of the same notebook.

sidecar/doors/server/keep.go writes it: a file for each notebook in a private folder, which is removed when it was read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass

FOLDER = "omni_perf-last-"
"""With the user's number; beside the folders of sidecars."""

KEPT_S = 24 * 3600.0
"""What is older was left by a kernel of another day."""

MOST_BYTES = 128 << 20


@dataclass(frozen=True)
class LastReport:
    """The last report of a kernel that died in a cell."""

    sentence: str
    text: str
    """The sentence, and the last stacks of all threads."""
    cell: int
    """Execution count of the cell."""
    headline: str
    compressed: bytes
    """The report document, JSON in gzip."""


def notebook_key() -> str:
    """Distinguish this notebook from the user's others: by its session's name, else by the working folder."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    try:
        name = name or os.getcwd()
    except OSError:  # the folder was removed
        return ""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def take(key: str) -> LastReport | None:
    """Read and remove what was left for this notebook; None where there is nothing, or nothing that is ours."""
    if not key:
        return None
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"):
        path = os.path.join(parent, f"{FOLDER}{os.geteuid()}", key + ".json")
        if parent and os.path.lexists(path):
            try:
                found = _read(path)
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if found is not None:
                return found
    return None


def _read(path: str) -> LastReport | None:
    import base64
    import json

    folder = os.lstat(os.path.dirname(path))
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        content = file.read(MOST_BYTES)
    os.unlink(path)
    if time.time() - about.st_mtime > KEPT_S:
        return None
    left = json.loads(content)
    return LastReport(
        str(left["sentence"]),
        str(left["text"]),
        int(left["cell"]),
        str(left["headline"]),
        base64.b64decode(left["report_gzip"]),
    )
