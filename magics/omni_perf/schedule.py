"""When torch.profiler records within a ``%%omni_perf --torch`` cell, by steps; nothing here needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum


class Action(Enum):
    """What the profiler does during a step; ``SAVE`` records the last step of a window."""

    NONE = "none"
    WARMUP = "warmup"
    RECORD = "record"
    SAVE = "save"


FIGURES = ("wait", "warmup", "active", "repeat", "skip_first")
"""What the magic's line and :func:`schedule` take, each a number of steps but for ``repeat``."""


@dataclass(frozen=True)
class Schedule:
    """Cycles of steps: ``wait`` unrecorded, ``warmup`` thrown away, ``active`` recorded into one trace.

    They begin after ``skip_first`` steps; after ``repeat`` cycles no more is recorded, 0 means never
    to stop. ``by_epoch`` counts steps and cycles anew in each epoch, as Composer does, else over
    all steps of the cell, as torch does.
    """

    wait: int = 0
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0
    by_epoch: bool = False

    @property
    def problem(self) -> str:
        """Why there can be no such schedule, a sentence; empty for a good one."""
        for name in FIGURES:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                return f"{name} takes a number of {'cycles' if name == 'repeat' else 'steps'}, not {value!r}."
        return "" if self.active else "active takes at least one step: what is recorded."

    def action(self, step: int) -> Action:
        """Return what is done during a step, counted from 0."""
        step -= self.skip_first
        cycle = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * cycle):
            return Action.NONE
        within = step % cycle
        if within < self.wait:
            return Action.NONE
        if within < self.wait + self.warmup:
            return Action.WARMUP
        return Action.RECORD if within < cycle - 1 else Action.SAVE


OnTrace = Callable[[str], object]
"""Called with the path of a finished trace."""

OnNumber = Callable[[int], object]
"""Called with the number of a cycle or an epoch that has ended."""

OnEnd = Callable[[list[str]], object]
"""Called with the paths of all files that were written."""


@dataclass(frozen=True)
class Handlers:
    """What is called as a recording goes on; None: nothing."""

    on_trace: OnTrace | None = None
    on_cycle: OnNumber | None = None
    on_epoch: OnNumber | None = None
    on_end: OnEnd | None = None


@dataclass
class Given:
    """What :func:`schedule` was called with last; None: it was not."""

    schedule: Schedule | None = None
    handlers: Handlers = Handlers()


given = Given()

_changed: list[Callable[[], None]] = []


def schedule(
    wait: int = Schedule.wait,
    warmup: int = Schedule.warmup,
    active: int = Schedule.active,
    repeat: int = Schedule.repeat,
    skip_first: int = Schedule.skip_first,
    *,
    by_epoch: bool = False,
    on_trace: OnTrace | None = None,
    on_cycle: OnNumber | None = None,
    on_epoch: OnNumber | None = None,
    on_end: OnEnd | None = None,
) -> Schedule:
    """Let ``%%omni_perf --torch`` record windows of steps from now on, as torch.profiler.schedule describes them.

    Called in such a cell, it holds from that line on. ``repeat=0`` goes on to the end of the cell.
    With ``by_epoch`` steps are counted anew in each epoch, which ``omni_perf.step(epoch=…)`` names.
    ``on_trace`` is called with the path of each finished trace, ``on_cycle`` with the number of each
    cycle that has ended, from 0, ``on_epoch`` with that of each epoch, ``on_end`` with the paths of
    all files when the cell is over. What the magic's own line says takes precedence.
    ``omni_perf.schedule.clear()`` lets cells be recorded as a whole again.
    """
    made = Schedule(wait, warmup, active, repeat, skip_first, by_epoch)
    if made.problem:
        raise ValueError(made.problem)
    for name, handler in {"on_trace": on_trace, "on_cycle": on_cycle, "on_epoch": on_epoch, "on_end": on_end}.items():
        if handler is not None and not callable(handler):
            raise TypeError(f"{name} takes a function, not {handler!r}.")
    _give(made, Handlers(on_trace, on_cycle, on_epoch, on_end))
    return made


def clear() -> None:
    """Let cells be recorded as a whole again, and call nothing."""
    _give(None, Handlers())


schedule.clear = clear  # pyright: ignore[reportFunctionMemberAccess] - reads as part of it


def _give(made: Schedule | None, handlers: Handlers) -> None:
    given.schedule, given.handlers = made, handlers
    for call in _changed.copy():
        call()


def on_change(call: Callable[[], None]) -> Callable[[], None]:
    """Have a function called at each call of :func:`schedule`; return what ends that."""
    _changed.append(call)

    def end() -> None:
        if call in _changed:
            _changed.remove(call)

    return end


def of_figures(figures: dict[str, int]) -> Schedule:
    """Return the schedule of what a magic's line names; the rest is as :func:`schedule` has it."""
    return replace(Schedule(), **figures)
