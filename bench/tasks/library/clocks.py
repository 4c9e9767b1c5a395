"""The clock of the programs beside: it is imported from a folder of libraries, so that lines are those of who awaits.

``await at("name", awaitable)`` notes when the await begins and ends; ``say()`` prints them at the end, as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
waits: dict[str, list[tuple[int, int]]] = {}


async def at(name: str, awaitable: Awaitable[T]) -> T:
    """Await this, and note for how long."""
    began = time.monotonic_ns()
    try:
        return await awaitable
    finally:
        waits.setdefault(name, []).append((began, time.monotonic_ns()))


def say(path: str) -> None:
    """Write what was noted."""
    with open(path, "w") as file:
        json.dump(waits, file)
