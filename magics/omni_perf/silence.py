"""Keeps what the libraries of our connection log away from the user's loggers.

With ``logging.basicConfig(level=logging.DEBUG)`` hpack would print each header that we
send into the running cell, the token among them. What the same libraries log for the user,
in other threads, is left as it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

PACKAGES = ("asyncio", "concurrent", "grpclib", "h2", "hpack", "hyperframe")
"""What runs in our thread besides our own code, which logs nothing."""

_thread = threading.local()


def silence_this_thread() -> None:
    """Drop from now on what PACKAGES log in the calling thread."""
    _thread.silent = True


@contextmanager
def silenced() -> Generator[None]:
    """Drop what PACKAGES log inside the with statement."""
    before = getattr(_thread, "silent", False)
    _thread.silent = True
    try:
        yield
    finally:
        _thread.silent = before


class _NotFromOurThread(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_thread, "silent", False)


_filter = _NotFromOurThread()


def install() -> None:
    """Filter every logger that PACKAGES have made so far; again where it was done."""
    for logger in _loggers():
        logger.addFilter(_filter)  # which adds a filter once


def uninstall() -> None:
    """Take the filters out."""
    for logger in _loggers():
        logger.removeFilter(_filter)


def _loggers() -> list[logging.Logger]:
    known = [name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] in PACKAGES]
    return [logging.getLogger(name) for name in known]
