"""Finds training steps by PyTorch's own hook, without a call in the user's code.

torch is never imported here: it is used once the user's code has loaded it. No class is
patched; the hooks are the public ``register_optimizer_step_post_hook`` and ``register_optimizer_step_pre_hook``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from .torchwatch import optimizer_hooks  # relative: this is part of another package in a program under `omni-perf run`


class OptimizerSteps:
    """Calls ``stepped`` each time the leading optimizer has stepped.

    The leading optimizer is the first that steps in a cell: a training step of a GAN,
    say, steps two. When it is gone, the next that steps leads, as of another training. ``stepped``
    gets whether it is the first step of such a one: what set that training up came before it; and when the optimizer
    was called (CLOCK_MONOTONIC, 0: not known). ``other`` is called once with the name of the class of another one that
    steps while one leads.
    """

    def __init__(self, stepped: Callable[[bool, int], None], other: Callable[[str], None]) -> None:
        self._step = stepped
        self._other = other
        self._others = 0
        self._handles: list[Any] = []
        self._called_ns = 0
        self._leading: weakref.ref[object] | None = None

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
        self._leading = None
        self._others = 0

    def remove(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _called(self, optimizer: object, args: object, kwargs: object) -> None:
        if self._leading is None or self._leading() in (None, optimizer):
            self._called_ns = monotonic_ns()

    def _stepped(self, optimizer: object, args: object, kwargs: object) -> None:
        leading = self._leading() if self._leading is not None else None
        anew = False
        if leading is None:
            anew = self._leading is not None
            self._leading = weakref.ref(optimizer)
        elif leading is not optimizer:
            self._others += 1
            if self._others == 1:
                self._other(type(optimizer).__name__)
            return
        called_ns, self._called_ns = self._called_ns, 0
        self._step(anew, called_ns)
