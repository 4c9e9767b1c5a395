"""Notices that torch is imported, without importing it.

It imports nothing that an interpreter has not loaded when it starts: `omni-perf run` has it in each
Python process of the program.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def optimizer_hooks() -> list[Any]:
    """Return torch's public functions for hooks after optimizers' steps and, if it has one, before them."""
    module = sys.modules.get("torch.optim.optimizer")
    after = getattr(module, "register_optimizer_step_post_hook", None)  # the last of the two to be defined
    before = getattr(module, "register_optimizer_step_pre_hook", None)
    return [hook for hook in (after, before) if after and hook]


class AfterImport:
    """Calls ``then`` once a module has been imported, in the thread that does it; it finds no module itself."""

    def __init__(self, name: str, then: Callable[[], object]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find, which calls us after it has run."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._after(spec.loader)
                return spec
        return None

    def _after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # as it was
            execute(module)
            try:
                self._then()
            except Exception:  # the program goes on, whatever became of the profiler
                pass

        loader.exec_module = exec_module


class TorchWatcher:
    """Asks ``look`` whenever something of torch is imported, until it returns True; it finds no module itself."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look for torch's optimizers: more of torch is imported after them."""
        if fullname.startswith("torch."):
            try:
                if self._look():
                    sys.meta_path.remove(self)
            except Exception:  # the program's import goes on, whatever became of the hook
                pass
        return None
