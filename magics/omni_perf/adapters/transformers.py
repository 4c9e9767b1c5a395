"""Hugging Face's Trainer: ``Trainer(…, callbacks=[Profile()])``."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from omni_perf.marks import step


class Profile(TrainerCallback):
    """Marks each step, with its epoch, its samples and, where Trainer counts them, its tokens."""

    def __init__(self) -> None:
        self._epoch = 0
        self._tokens = 0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._epoch = round(state.epoch or 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        tokens = int(state.num_input_tokens_seen or 0)
        step(
            state.max_steps,
            epoch=self._epoch,
            samples=args.train_batch_size * args.gradient_accumulation_steps,
            tokens=max(tokens - self._tokens, 0),
        )
        self._tokens = tokens
