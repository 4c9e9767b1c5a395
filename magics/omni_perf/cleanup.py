"""Recognises ``%%omni_perf`` in a cell and takes it out of Python's way.

The line becomes a comment, so that everything below keeps its line number; await,
``from __future__`` and ``Out[n]`` stay native. In front of another cell magic the line
is dropped instead, because IPython looks for cell magics on the first line only.

Below ``%%px`` the line is the client's own, not that of each engine: they are recorded together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OUR_LINE = re.compile(r"%%omni_perf(?=\s|$)[ \t]*(.*)")

_TRANSFORMING_MAGICS = re.compile(r"%%(time|timeit|prun)(?=\s|$)")
"""Cell magics that send their body through IPython's transformers again."""

_PARALLEL = re.compile(r"%%px(?=\s|$)")
"""ipyparallel's cell magic: its body is a cell of each engine."""

ENGINES = "%%px"
"""As the client of ``--cluster``: the engines that ``%%px`` uses."""


def options_line(raw_cell: str) -> str | None:
    """Return the rest of a cell's ``%%omni_perf`` line, or None without it.

    The line may follow cell magics that transform their body, where the event
    hooks would not meet it otherwise.
    """
    if "%%omni_perf" not in raw_cell:
        return None
    engines = ""
    for line in raw_cell.splitlines():
        if not line.strip():
            continue
        match = _OUR_LINE.match(line)
        if match:
            given = match[1].strip()
            return given if "--cluster" in given else f"{given} {engines}".strip()
        if engines:  # take_out, too, looks only at the line below %%px
            return None
        if _PARALLEL.match(line):
            engines = f"--cluster {ENGINES}"
        elif not _TRANSFORMING_MAGICS.match(line):
            return None
    return None


def filled_in(line: str, names: Mapping[str, Any]) -> str:
    """Put the values of ``{expression}`` and ``$name`` into a magic's line, as IPython does for its own."""
    if not ("{" in line or "$" in line):
        return line
    from IPython.utils.text import DollarFormatter

    try:
        return DollarFormatter().vformat(line, (), names)
    except Exception:  # IPython, too, takes it as it is
        return line


def take_out(lines: list[str]) -> list[str]:
    """Comment out or drop the leading ``%%omni_perf`` line: an IPython cleanup transformer."""
    if lines and _PARALLEL.match(lines[0]):
        body = next((at for at, line in enumerate(lines[1:], 1) if line.strip()), 0)
        ours = body and _OUR_LINE.match(lines[body])
        return [*lines[:body], "# " + lines[body], *lines[body + 1 :]] if ours else lines
    if not lines or not _OUR_LINE.match(lines[0]):
        return lines
    below = take_out(lines[1:])
    for offset, line in enumerate(below):
        if line.startswith("%%"):
            return below[offset:]
        if line.strip():
            break
    return ["# " + lines[0], *below]
