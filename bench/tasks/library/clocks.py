"""The clock of the programs beside: it is imported from a folder of libraries, so that lines are those of who awaits.

``await at("name", awaitable)`` notes when the await begins and ends; ``say()`` writes them at the end, as JSON, and
beside them the CPU time that the program has needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
waits: dict[str, list[tuple[int, int]]] = {}
began_s = time.process_time()
"""The program's CPU time when it began: what a profiler within its process takes to start is not the program's."""


async def at(name: str, awaitable: Awaitable[T]) -> T:
    """Await this, and note for how long."""
    began = time.monotonic_ns()
    try:
        return await awaitable
    finally:
        waits.setdefault(name, []).append((began, time.monotonic_ns()))


def say(path: str) -> None:
    """Write what was noted."""
    cpu_s = time.process_time() - began_s
    Path(path).write_text(json.dumps(waits))
    Path(path).with_suffix(".cpu").write_text(f"{cpu_s}")
