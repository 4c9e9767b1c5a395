"""Whether a cell's outputs are the same with the profiler, but for what differs without it too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Outputs = list[dict[str, Any]]


def _joined(outputs: Outputs) -> Outputs:
    """Join what was written to one stream: how it was cut into messages is chance."""
    streams: dict[str, str] = {}
    rest: Outputs = []
    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + str(output["text"])
        else:
            rest.append({key: value for key, value in output.items() if key not in ("metadata", "execution_count")})
    return [*({"output_type": "stream", "name": name, "text": text} for name, text in sorted(streams.items())), *rest]


def exact(outputs: Outputs) -> str:
    """Return all that was shown."""
    return json.dumps(_joined(outputs), sort_keys=True, default=str, ensure_ascii=False)


def without_pictures(outputs: Outputs) -> str:
    """Return all but the bytes of pictures, which are drawn of figures that may differ."""
    return re.sub(r'"(image/[\w+]+)": "[^"]*"', r'"\1"', exact(outputs))


def without_numbers(outputs: Outputs) -> str:
    """Return the text with one digit for all numbers, and one blank for all space between them."""
    text = re.sub(r"0x[0-9a-f]+|[-+]?\d[\d.,_]*(?:e[-+]?\d+)?", "0", without_pictures(outputs))
    return re.sub(r"(\\n|\s)+", " ", re.sub(r"\b0 (?:[nµ\u03bcm]s|s|min|[kMG]i?B)\b", "0 unit", text))


def kinds(outputs: Outputs) -> str:
    """Return what kinds of outputs there were, by MIME type, stream and exception."""
    found: list[str] = []
    for output in _joined(outputs):
        if output["output_type"] == "stream":
            found.append(output["name"])
        elif output["output_type"] == "error":
            found.append(str(output["ename"]))
        else:
            found.append(" ".join(sorted(output.get("data", {}))))
    return "\n".join(found)


LEVELS: dict[str, Callable[[Outputs], str]] = {
    "exact": exact,
    "without pictures": without_pictures,
    "without numbers": without_numbers,
    "kinds": kinds,
}
"""How closely outputs are compared, the closest first."""


def difference(bare: Outputs, again: Outputs, profiled: Outputs) -> tuple[str, bool]:
    """Return the closest level at which two bare runs agree, and whether the profiled one differs at it.

    The level is empty where two bare runs agree at none: then nothing can be said.
    """
    for level, seen in LEVELS.items():
        if seen(bare) == seen(again):
            return level, seen(bare) != seen(profiled)
    return "", False
