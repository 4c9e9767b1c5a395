"""What memory of the kernel is resident, as the kernel of the system has it.

A cell reads it at its begin and at its end: of a short one the sidecar's readings begin when most of it is over.
"""

from __future__ import annotations

import os

_FILE = "/proc/self/statm"
_DIGITS = 20
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


def read() -> int:
    """Return it in bytes, in some 10 µs; 0 where it is not known."""
    try:
        descriptor = os.open(_FILE, os.O_RDONLY)
        try:
            return int(os.read(descriptor, 4 * _DIGITS).split()[1]) * _PAGE
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):
        return 0
