"""Shows things to the person: display bundles and single sentences."""

from __future__ import annotations

import sys
import unicodedata

from omni_perf import contract
from omni_perf.report import bundle_part
from omni_perf.shell import Shell


def show(shell: Shell, bundle: contract.Bundle, place: str = "") -> None:
    """Publish a bundle as an output of the running cell, or in the place of the display of that id."""
    transient = bundle_part(bundle, "transientJson")
    if place:
        transient["display_id"] = place
    shell.display_pub.publish(
        bundle_part(bundle, "dataJson"), bundle_part(bundle, "metadataJson"), transient=transient, update=bool(place)
    )


def display(shell: Shell, html: str, text: str) -> None:
    """Publish HTML that is ours, and the same as text for where none is shown."""
    shell.display_pub.publish({"text/html": html, "text/plain": plain(text)}, {}, transient={}, update=False)


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
