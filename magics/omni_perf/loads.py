"""Notes which text the user's own modules were loaded from, for the time of their files tells.

A profile shows lines of files as they are now. Whether they are what runs cannot be told from outside
where Python keeps no bytecode beside them.
"""

from __future__ import annotations

import os
import sys
from typing import cast

from omni_perf.contract import Loaded
from omni_perf.installation import installation


class Loads:
    """Looks at ``sys.modules`` between cells: at what was imported or reloaded since the last look."""

    def __init__(self) -> None:
        told = installation()
        folders = [*(os.path.join(prefix, "lib") for prefix in told.get("prefixes", [])), *told.get("standard", [])]
        self._libraries = tuple(os.path.join(folder, "") for folder in [*folders, told.get("extension", "")])
        self._known = set(sys.modules)  # when these were loaded is not known
        self._newest = next(reversed(sys.modules), "")
        self._specs: dict[str, object] = {}
        self._times: dict[str, int] = {}

    def look(self) -> None:
        """Note the files of new modules. It costs next to nothing where there are none."""
        if (newest := next(reversed(sys.modules), "")) != self._newest or len(sys.modules) != len(self._known):
            self._newest = newest
            for name in set(sys.modules) - self._known:
                self._note(name)
            self._known = set(sys.modules)
        for name, spec in list(self._specs.items()):
            if _spec(name) is not spec:
                self._note(name)

    def unknown_to(self, known: dict[str, int]) -> list[Loaded]:
        """List what a sidecar with this knowledge lacks."""
        return [
            {"file": file, "modifiedNs": str(time)} for file, time in self._times.items() if known.get(file) != time
        ]

    def _note(self, name: str) -> None:
        spec = _spec(name)
        file = getattr(spec, "origin", None)
        if not isinstance(file, str) or not file.endswith(".py") or file.startswith(self._libraries):
            self._specs.pop(name, None)
            return
        self._specs[name] = spec
        try:
            self._times[file] = os.stat(file).st_mtime_ns
        except OSError:
            self._times.pop(file, None)


def _spec(name: str) -> object:
    """Return the module's spec, a new one after a reload, without waking modules that load lazily."""
    attributes = getattr(sys.modules.get(name), "__dict__", None)
    return cast("dict[str, object]", attributes).get("__spec__") if isinstance(attributes, dict) else None
