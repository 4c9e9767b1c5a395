"""Runs the omni-perf program for what this process asks of it once, and waits.

What the program writes into files is its own business: the rules for that (private,
whole or not at all, no link followed) are told and kept in one place, sidecar/output.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from omni_perf.launcher import LaunchError, find_binary

MISPLACED = 3
"""The exit status when all was done but a result is not where it was asked for."""

PathLike = str | os.PathLike[str]


class ProgramError(Exception):
    """The program could not be run; the text is a sentence for the user."""


def run(
    arguments: Sequence[str], given: bytes | None = None, capture_stdout: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run omni-perf with these arguments and ``given`` on its standard input."""
    try:
        done = subprocess.run(
            [find_binary(), *arguments],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            stdout=subprocess.PIPE if capture_stdout else None,
            stderr=subprocess.PIPE,
            check=False,
        )
    except (LaunchError, OSError, ValueError) as error:  # a name with a NUL
        raise ProgramError(f"omni-perf could not be started: {error}") from error
    if done.returncode < 0:
        raise ProgramError(
            f"omni-perf {arguments[0]} was killed by signal {-done.returncode}; was the machine out of memory?"
        )
    return done


def local(path: PathLike) -> str:
    """Return a path as the program takes it, ``~`` resolved."""
    return os.path.expanduser(os.fspath(path))
