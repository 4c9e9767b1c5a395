"""Finds training steps by PyTorch's own hook, without a call in the user's code.

torch is never imported here: it is used once the user's code has loaded it. No class is
patched; the hooks are the public ``register_optimizer_step_post_hook`` and ``register_optimizer_step_pre_hook``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Final

from .torchwatch import optimizer_hooks  # relative: this is part of another package in a program under `omni-perf run`

ALONE: Final = 10
"""After so many steps of another optimizer, and none of the leading one, another training goes on."""


class OptimizerSteps:
    """Calls ``stepped`` each time the leading optimizer has stepped.

    The leading optimizer is the first that steps in a cell: a training step of a GAN,
    say, steps two. When it is gone, the next that steps leads, as of another training; where the program keeps
    it, as in a list of finished trials, one that steps ALONE times without any other leads from then on, and
    these steps count. Once two have stepped in turn, none does so any more.
    ``stepped`` gets when the step ended, whether it is the first step of another training, as what set that up
    came before it, and when the optimizer was called (CLOCK_MONOTONIC, 0: not known). ``other`` is called once
    with the name of the class of another one that steps in turn with the one that leads.
    """

    def __init__(self, stepped: Callable[[int, bool, int], None], other: Callable[[str], None]) -> None:
        self._step = stepped
        self._other = other
        self._handles: list[Any] = []
        self._called_ns = 0
        self._other_called_ns = 0  # of any but the leading one
        self.new_cell()

    @property
    def hooked(self) -> bool:
        """Whether the hooks are in place."""
        return bool(self._handles)

    def look(self) -> bool:
        """Place the hooks if torch is loaded by now; return whether they are in place."""
        if not self._handles:
            self._handles = [
                register(hook) for register, hook in zip(optimizer_hooks(), (self._stepped, self._called), strict=False)
            ]
        return self.hooked

    def new_cell(self) -> None:
        """Let the next optimizer that steps lead."""
        self._leading: weakref.ref[object] | None = None
        self._led: list[weakref.ref[object]] = []
        self._other_one: weakref.ref[object] | None = None  # stepped last, without the leading one
        self._waiting: list[tuple[int, int]] = []  # its steps so far: when they ended, and when it was called
        self._in_turn = False  # two have stepped so, and ``other`` was called

    def remove(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _called(self, optimizer: object, args: object, kwargs: object) -> None:
        if self._leading is None or self._leading() in (None, optimizer):
            self._called_ns = monotonic_ns()
        else:
            self._other_called_ns = monotonic_ns()

    def _stepped(self, optimizer: object, args: object, kwargs: object) -> None:
        at_ns = monotonic_ns()
        leading = self._leading() if self._leading is not None else None
        if leading is not None and leading is not optimizer:
            called_ns, self._other_called_ns = self._other_called_ns, 0
            self._go_on(optimizer, at_ns, called_ns)
            return
        anew = leading is None and self._leading is not None
        if leading is None:
            self._lead(optimizer)
        self._find_in_turn()
        called_ns, self._called_ns = self._called_ns, 0
        self._step(at_ns, anew, called_ns)

    def _lead(self, optimizer: object) -> None:
        self._leading = weakref.ref(optimizer)
        if all(led() is not optimizer for led in self._led):
            self._led.append(self._leading)

    def _find_in_turn(self) -> None:
        """Take note that the leading optimizer steps on, whatever other one has stepped meanwhile."""
        other = self._other_one() if self._other_one is not None else None
        if other is not None and not self._in_turn:
            self._in_turn = True
            self._other(type(other).__name__)
        self._other_one, self._waiting = None, []

    def _go_on(self, optimizer: object, at_ns: int, called_ns: int) -> None:
        """Let another optimizer lead that has stepped often enough alone."""
        if self._in_turn:
            return
        if self._other_one is None or self._other_one() is not optimizer:
            self._other_one, self._waiting = weakref.ref(optimizer), []
        self._waiting.append((at_ns, called_ns))
        if len(self._waiting) == ALONE:
            new = all(led() is not optimizer for led in self._led)  # else models are trained by turns
            self._lead(optimizer)
            for nth, (ended_ns, began_ns) in enumerate(self._waiting):
                self._step(ended_ns, new and nth == 0, began_ns)
            self._other_one, self._waiting = None, []
