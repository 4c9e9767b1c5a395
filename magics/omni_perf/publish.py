"""Shows things to the person: display bundles and single sentences."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping
from typing import Any

from omni_perf import contract
from omni_perf.report import bundle_part
from omni_perf.shell import Shell

OURS = {"omni_perf": "display"}
"""Metadata of messages with displays that are ours: who follows the kernel does not count them as the cell's output."""


def show(shell: Shell, bundle: contract.Bundle, place: str = "") -> None:
    """Publish a bundle as an output of the running cell, or in the place of the display of that id."""
    transient = bundle_part(bundle, "transientJson")
    if place:
        transient["display_id"] = place
    publish(shell, bundle_part(bundle, "dataJson"), bundle_part(bundle, "metadataJson"), transient, update=bool(place))


def display(shell: Shell, html: str, text: str) -> None:
    """Publish HTML that is ours, and the same as text for where none is shown."""
    publish(shell, {"text/html": html, "text/plain": plain(text)})


def publish(
    shell: Shell,
    data: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    transient: Mapping[str, Any] | None = None,
    update: bool = False,
) -> None:
    """Publish a display that is ours. The mark is of the message: the notebook's file does not have it."""
    publisher: Any = shell.display_pub
    marks = hasattr(publisher, "register_hook")  # ipykernel's
    if marks:
        publisher.register_hook(_marked)
    try:
        publisher.publish(data, metadata or {}, transient=transient or {}, update=update)
    finally:
        if marks:
            publisher.unregister_hook(_marked)


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    message["metadata"] = {**message["metadata"], **OURS}
    return message


def say(sentence: str) -> None:
    """Print what was found, on stdout."""
    _print(sentence, error=False)


def warn(sentence: str) -> None:
    """Print what was lost, on stderr."""
    _print("omni_perf: " + sentence, error=True)


def plain(text: str) -> str:
    """Replace what a terminal would take for a command: names and errors may hold anything."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "␣" for c in text)


def _print(text: str, error: bool) -> None:
    try:
        print(plain(text), file=sys.stderr if error else sys.stdout, flush=True)
    except Exception:  # the cell left something else in place of the stream
        pass
