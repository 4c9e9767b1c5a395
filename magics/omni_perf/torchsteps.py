"""Finds training steps by PyTorch's own hook, without a call in the user's code.

torch is never imported here: it is used once the user's code has loaded it. No class is
patched; the hook is the public ``register_optimizer_step_post_hook``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .torchwatch import optimizer_hook  # relative: this is part of another package in a program under `omni-perf run`


class OptimizerSteps:
    """Calls ``stepped`` each time the leading optimizer has stepped.

    The leading optimizer is the first that steps in a cell: a training step of a GAN,
    say, steps two. When it is gone, the next that steps leads, as of another training. ``stepped``
    gets whether it is the first step of such a one: what set that training up came before it. ``other`` is called
    once with the name of the class of another one that steps while one leads.
    """

    def __init__(self, stepped: Callable[[bool], None], other: Callable[[str], None]) -> None:
        self._step = stepped
        self._other = other
        self._others = 0
        self._handle: Any = None
        self._leading: weakref.ref[object] | None = None

    @property
    def hooked(self) -> bool:
        """Whether the hook is in place."""
        return self._handle is not None

    def look(self) -> bool:
        """Place the hook if torch is loaded by now; return whether it is in place."""
        if self._handle is None:
            register = optimizer_hook()
            if register is not None:
                self._handle = register(self._stepped)
        return self._handle is not None

    def new_cell(self) -> None:
        """Let the next optimizer that steps lead."""
        self._leading = None
        self._others = 0

    def remove(self) -> None:
        """Take the hook out."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

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
        self._step(anew)
