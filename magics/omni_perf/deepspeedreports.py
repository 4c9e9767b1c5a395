"""Keeps what DeepSpeed reports of flops and of memory in the folder of a cell's traces.

DeepSpeed prints its flops report at one step of a training, to the cell's output or to a file of its own, and logs
what memory was in use where the program asks for that (``see_memory_usage``, ``memory_breakdown``). Where the user has
named a folder for traces both are written there once more: the flops report by DeepSpeed itself, with the same
arguments.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import signature
from typing import Any, Final

MODULE: Final = "deepspeed.profiling.flops_profiler.profiler"
LOGGER: Final = "DeepSpeed"
MEMORY_FUNCTION: Final = "see_memory_usage"
MEMORY_WORDS: Final = ("mem_allocated", "max_mem_allocated", "MEMSTATS", "Max_MA ")

Print = Callable[[str], None]
"""Writes a report into the file of that path."""

Reported = Callable[[str, Print], None]
"""Is called with a report of a kind, "flops" or "memory"."""


def watch(reported: Reported) -> Callable[[], None] | None:
    """Have a function called after each report of DeepSpeed's.

    Return what ends that; None while DeepSpeed is not imported.
    """
    ends = [end for end in (_watch_flops(reported), _watch_memory(reported)) if end is not None]
    if not ends:
        return None

    def end_all() -> None:
        for end in ends:
            end()

    return end_all


def _watch_flops(reported: Reported) -> Callable[[], None] | None:
    kind: Any = getattr(sys.modules.get(MODULE), "FlopsProfiler", None)
    original = getattr(kind, "print_model_profile", None)
    if original is None:
        return None

    @wraps(original)
    def print_model_profile(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)

        def again(path: str) -> None:
            given = signature(original).bind(*arguments, **options)
            given.arguments["output_file"] = path
            original(*given.args, **given.kwargs)

        reported("flops", again)
        return result

    kind.print_model_profile = print_model_profile

    def end() -> None:
        if kind.print_model_profile is print_model_profile:
            kind.print_model_profile = original

    return end


def _watch_memory(reported: Reported) -> Callable[[], None] | None:
    """Look at what goes through DeepSpeed's logger.

    It is a filter that lets all pass: a handler would keep the warnings of a logger that has none from standard error.
    """
    if "deepspeed" not in sys.modules:
        return None

    def look(record: logging.LogRecord) -> bool:
        with suppress(Exception):  # of a message that does not fit its arguments: its handlers say so
            text = record.getMessage()
            if record.funcName == MEMORY_FUNCTION or any(word in text for word in MEMORY_WORDS):
                reported("memory", lambda path: _append(path, text))
        return True

    logger = logging.getLogger(LOGGER)
    logger.addFilter(look)
    return lambda: logger.removeFilter(look)


def _append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
