"""Copies results to places that fsspec knows, s3://bucket/run, and back.

fsspec, and what it needs for a protocol, is imported when a URL is named; credentials are its own matter.
The program calls ``python -m omni_perf remote-put FOLDER URL`` and ``remote-get URL PATH``.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

_URL = re.compile(r"[a-z][a-z0-9+.-]*(::[a-z][a-z0-9+.-]*)*://.")
"""As sidecar/doors/remote recognises one."""

_FOLDERS = frozenset(["file", "local", "sftp", "ssh", "smb", "ftp", "hdfs", "webhdfs"])
"""Protocols whose folders are made for a file in them. In others they are a part of the name, and to make one could
make a bucket of a mistyped name."""


class RemoteError(OSError):
    """A place could not be read or written; the text is a sentence for the user."""


def is_url(name: object) -> bool:
    """Return whether this names a remote place."""
    return isinstance(name, str) and _URL.match(name) is not None


def put(folder: str, url: str) -> list[str]:
    """Copy all files of a folder below a URL, which ends with a slash; return their URLs."""
    fs, root = _place(url)
    written: list[str] = []
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(parent, name)
            inner = os.path.relpath(path, folder)
            try:
                if _FOLDERS.intersection([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol):
                    fs.makedirs(os.path.dirname(f"{root}/{inner}"), exist_ok=True)
                fs.put_file(path, f"{root}/{inner}")
            except Exception as error:  # whatever its library raises
                raise RemoteError(f"{url}{inner} could not be written: {_why(error)}.") from error
            written.append(url + inner)
    return written


def get(url: str, path: str) -> None:
    """Copy a file, or a folder with all in it, from a URL."""
    fs, root = _place(url)
    try:
        fs.get(root, path, recursive=bool(fs.isdir(root)))
    except Exception as error:  # whatever its library raises
        raise RemoteError(f"{url} could not be read: {_why(error)}.") from error


def _place(url: str) -> tuple[Any, str]:
    """Return the file system and the path in it."""
    try:
        fsspec: Any = importlib.import_module("fsspec")
    except ImportError as error:
        raise RemoteError(
            f"{url} needs fsspec, which is not installed in {sys.executable}: pip install 'omni_perf[remote]'."
        ) from error
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except Exception as error:  # an unknown protocol, a library that is missing, credentials
        raise RemoteError(f"{url} cannot be reached: {_why(error)}.") from error
    return fs, str(path).rstrip("/")


def _why(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")


def main(arguments: list[str]) -> None:
    """Answer ``remote-put`` and ``remote-get``."""
    what, source, target = arguments
    try:
        if what == "remote-put":
            put(source, target)
        else:
            get(source, target)
    except RemoteError as error:
        sys.exit(f"omni_perf: {error}")
