"""Runs the omni-perf program for what this process asks of it once, and waits.

What the program writes into files is its own business: the rules for that (private,
whole or not at all, no link followed) are described and kept in one place, sidecar/show/output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import IO

from omni_perf.launcher import LaunchError, find_binary

MISPLACED = 3
"""The exit status when all was done but a result is not where it was asked for."""

PathLike = str | os.PathLike[str]


class ProgramError(Exception):
    """The program could not be run; the text is a sentence for the user."""


def run(
    arguments: Sequence[str], given: bytes | IO[bytes] | None = None, capture_stdout: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run omni-perf with these arguments and ``given``, bytes or an open file, on its standard input."""
    try:
        done = subprocess.run(
            [find_binary(), *arguments],
            env={**os.environ, "OMNI_PERF_PYTHON": sys.executable},
            input=given if isinstance(given, bytes) else None,
            stdin=subprocess.DEVNULL if given is None else None if isinstance(given, bytes) else given,
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


def follow(target: str, show: Callable[[dict[str, str]], object]) -> None:
    """Show what a process or kernel does, as data of displays, until an interrupt or its end.

    An interrupt is the way to end it and no error, as in a terminal.
    """
    try:
        top = subprocess.Popen(
            [find_binary(), "top", "--displays", "--", target],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # an interrupt of the kernel's group is to reach it once
        )
    except (LaunchError, OSError, ValueError) as error:
        raise ProgramError(f"omni-perf could not be started: {error}") from error
    with top:
        assert top.stdout is not None and top.stderr is not None
        try:
            for line in top.stdout:
                show(json.loads(line))
        except KeyboardInterrupt:
            top.send_signal(signal.SIGINT)
            for line in top.stdout:
                show(json.loads(line))
        except BaseException:
            top.kill()
            raise
        problem = top.stderr.read().decode(errors="replace").strip()
    if top.returncode:
        raise ProgramError(problem.removeprefix("omni-perf: ") or f"omni-perf top ended with status {top.returncode}.")


def local(path: PathLike) -> str:
    """Return a path as the program takes it, ``~`` resolved."""
    return os.path.expanduser(os.fspath(path))
