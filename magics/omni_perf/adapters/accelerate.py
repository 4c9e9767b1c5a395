"""Accelerate: ``for batch in batches(accelerator, loader, epoch):`` in the loop that is yours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from omni_perf.adapters import batch_size
from omni_perf.marks import step

Batch = TypeVar("Batch")


def batches(accelerator: Any, loader: Iterable[Batch], epoch: int | None = None) -> Iterator[Batch]:
    """Yield a loader's batches; a step ends where the loop's body has, if gradients were synchronised in it."""
    samples = 0
    for batch in loader:
        yield batch
        samples += batch_size(batch)
        if accelerator.sync_gradients:
            step(epoch=epoch, samples=samples)
            samples = 0
