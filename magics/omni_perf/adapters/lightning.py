"""Lightning, also as pytorch_lightning: ``Trainer(callbacks=[Profile()], profiler=Callbacks())``."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from omni_perf.adapters import Event, batch_size
from omni_perf.marks import step

OURS = "omni_perf"

_names = ("lightning.pytorch", "pytorch_lightning")
_package: Any = importlib.import_module(next((name for name in _names if name in sys.modules), _names[0]))


class Profile(_package.Callback):
    """Marks each step of the optimizer, with its epoch and the samples of its batches."""

    state_key = OURS

    def __init__(self) -> None:
        self._steps = self._samples = 0

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        self._steps, self._samples = trainer.global_step, 0

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._samples += batch_size(batch)
        if trainer.global_step == self._steps:
            return  # its gradients are added to those of the next
        total = trainer.estimated_stepping_batches
        step(
            int(total) if math.isfinite(total) and total > 0 else None,
            epoch=trainer.current_epoch,
            samples=self._samples,
        )
        self._steps, self._samples = trainer.global_step, 0


class Callbacks(_package.profilers.Profiler):
    """Lightning's profiler that makes regions of its callbacks: "ModelCheckpoint.on_train_epoch_end"."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, Event] = {}

    def start(self, action_name: str) -> None:
        name = action_name.removeprefix("[Callback]")
        if name != action_name and not name.startswith(OURS):
            self._open[action_name] = event = Event(_short(name))
            event.__enter__()

    def stop(self, action_name: str) -> None:
        event = self._open.pop(action_name, None)
        if event is not None:
            event.__exit__(None, None, None)


def _short(name: str) -> str:
    """Return "Stop.on_fit_end" of "main.<locals>.Stop{'monitor': None, …}.on_fit_end"."""
    class_name, brace, _ = name.partition("{")
    short = class_name + name[name.rindex("}") + 1 :] if brace and "}" in name else name
    return short.rpartition("<locals>.")[2]
