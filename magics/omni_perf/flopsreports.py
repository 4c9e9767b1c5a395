"""Keeps what DeepSpeed's flops profiler reports in the folder of a cell's traces.

DeepSpeed prints its report at one step of a training, to the cell's output or to a file of its own. Where the
user has named a folder for traces it is printed there once more, by DeepSpeed itself, with the same arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Final

MODULE: Final = "deepspeed.profiling.flops_profiler.profiler"

Print = Callable[[str], None]
"""Writes a report into the file of that path."""


def watch(printed: Callable[[Print], None]) -> Callable[[], None] | None:
    """Have a function called after each report that DeepSpeed prints.

    Return what ends that; None while DeepSpeed is not imported.
    """
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

        printed(again)
        return result

    kind.print_model_profile = print_model_profile

    def end() -> None:
        if kind.print_model_profile is print_model_profile:
            kind.print_model_profile = original

    return end
