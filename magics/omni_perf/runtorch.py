"""Runs torch.profiler in a program under `omni-perf run --torch`, as in a cell, from the end of ``import torch`` on.

`omni-perf run` places this module in programs that do not import omni_perf, too, as part of the package _omni_perf.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from contextlib import suppress
from itertools import pairwise
from typing import Any

from . import marks, runmarks
from .options import Torch
from .schedule import Schedule, given, of_figures
from .torchprofile import TorchProfile

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "composer")
"""Programs that import torch, and only start others."""

LAUNCHING = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "composer.cli.launcher")
"""Modules that do, run by ``python -m``."""

profile: TorchProfile | None = None


def start() -> None:
    """Begin, unless this process only starts others; of a child that was spawned with its first step."""
    if _launches():
        return
    if getattr(sys.modules.get("multiprocessing.process"), "_parent_process", None) is not None:
        marks.watch(_first_step)
    elif threading.current_thread() is threading.main_thread():
        _begin()


def take_over(placed: Any) -> None:
    """The program has imported omni_perf after torch: its own steps and schedule count."""
    other = placed.profile
    if other is not None and other.steps:
        marks.watch(other.step)
        return
    if other is not None:
        other.cancel()
        placed.profile = None
    start()


def _launches() -> bool:
    arguments = sys.orig_argv[1:5]
    named = arguments and os.path.basename(arguments[0]) in LAUNCHERS
    return bool(named) or any(word == "-m" and name in LAUNCHING for word, name in pairwise(arguments))


def _first_step(by_hook: bool, epoch: int | None) -> None:
    if threading.current_thread() is threading.main_thread():
        _begin()
        if profile is not None:
            profile.step(by_hook, epoch)


def _begin() -> None:
    global profile
    asked = json.loads(os.environ[runmarks.PROFILED])
    spool = os.path.join(asked["spool"], str(os.getpid()))
    os.makedirs(spool, exist_ok=True)
    figures = asked["figures"]
    if not figures and not asked["whole"] and given.schedule is None:
        given.schedule = Schedule()
    words = ("shapes", "stack", "memory", "flops", "modules")
    wanted = Torch(
        *(word in asked["words"] for word in words),
        schedule=of_figures(figures) if figures else None,
        folder=asked["folder"],
        spool=spool,
    )
    profile = TorchProfile(wanted)
    profile.begin()
    atexit.register(_end, profile)


def _end(ended: TorchProfile) -> None:
    """Write what is left, and send where the traces are."""
    if ended is not profile or (sender := runmarks.sender) is None:
        return
    with suppress(Exception):
        ended.end()
        ended.ended([])
    for path, recorded, window in zip(ended.traces, ended.recorded, ended.windows, strict=True):
        sender.trace(path, recorded.get("cycle", ""), ended.rank, window)
    for remark in ended.remarks:
        sender.remark(_of_a_program(remark))
    sender.flush()


def _of_a_program(remark: str) -> str:
    return (
        remark.replace("this cell", "the program").replace("the cell", "the program").replace(" in the chart", " in it")
    )
