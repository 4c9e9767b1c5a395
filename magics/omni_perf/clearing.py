"""Notifies displays of a running cell that the cell clears its output, and with it them.

Which messages go through the publisher's hooks changed between releases of ipykernel (6.20 sends
clear_output past them, 6.25 does not), so the method itself is stood in for while a display is open.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol, cast


class Cleared(Protocol):
    """Is notified of every clear_output; whose it is, it finds out itself."""

    def clear_output_was_called(self) -> None: ...


class _ClearOutput:
    """Stands in for the clear_output of one publisher."""

    def __init__(self, original: Any, replaced: dict[str, Any]) -> None:
        self.displays: list[Cleared] = []
        self.replaced = replaced
        """What the publisher had of its own under this name, if anything."""
        self._original = original

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        for display in tuple(self.displays):
            display.clear_output_was_called()
        return self._original(*args, **keywords)


_NAME = "clear_output"
_lock = threading.Lock()


def watch(publisher: object, display: Cleared) -> None:
    """Notify a display of all calls of the publisher's clear_output, until :func:`leave`."""
    attributes, original = _own(publisher), getattr(publisher, _NAME, None)
    if attributes is None or original is None:
        return
    with _lock:
        if not isinstance(attributes.get(_NAME), _ClearOutput):
            replaced = {_NAME: attributes[_NAME]} if _NAME in attributes else {}
            attributes[_NAME] = _ClearOutput(original, replaced)
        cast(_ClearOutput, attributes[_NAME]).displays.append(display)


def leave(publisher: object, display: Cleared) -> None:
    """Notify it no longer; with the last one the publisher is as it was."""
    attributes = _own(publisher)
    with _lock:
        replacement = attributes.get(_NAME) if attributes is not None else None
        if attributes is None or not isinstance(replacement, _ClearOutput) or display not in replacement.displays:
            return
        replacement.displays.remove(display)
        if not replacement.displays:
            del attributes[_NAME]
            attributes.update(replacement.replaced)


def _own(publisher: object) -> dict[str, Any] | None:
    return cast("dict[str, Any] | None", getattr(publisher, "__dict__", None))
