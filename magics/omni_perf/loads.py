"""Notes the times of the files that the user's own modules were loaded from.

A profile shows lines of files as they are now. Whether they are what runs cannot be known from outside
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
        places = installation()
        folders = [*(os.path.join(prefix, "lib") for prefix in places.get("prefixes", [])), *places.get("standard", [])]
        self._libraries = tuple(os.path.join(folder, "") for folder in [*folders, places.get("extension", "")])
        self._known = set(sys.modules)  # when these were loaded is not known
        self._newest = next(reversed(sys.modules), "")
        self._specs: dict[str, object] = {}
        self._times: dict[str, int] = {}  # 0: not known

    def look(self, since_ns: int) -> None:
        """Note the files of modules that are new since then, by the wall clock.

        It costs next to nothing where there are none.
        """
        if (newest := next(reversed(sys.modules), "")) != self._newest or len(sys.modules) != len(self._known):
            self._newest = newest
            for name in set(sys.modules) - self._known:
                self._note(name, since_ns)
            self._known = set(sys.modules)
        for name, spec in list(self._specs.items()):
            if _spec(name) is not spec:
                self._note(name, since_ns)

    def unknown_to(self, known: dict[str, int]) -> list[Loaded]:
        """List what a sidecar with this knowledge lacks."""
        return [
            {"file": file, "modifiedNs": str(time)} for file, time in self._times.items() if known.get(file, 0) != time
        ]

    def _note(self, name: str, since_ns: int) -> None:
        spec = _spec(name)
        file = getattr(spec, "origin", None)
        if not isinstance(file, str) or not file.endswith(".py") or file.startswith(self._libraries):
            self._specs.pop(name, None)
            return
        self._specs[name] = spec
        try:
            modified_ns = os.stat(file).st_mtime_ns
        except OSError:
            modified_ns = 0
        # Of a text that was written later, it is not known whether the module was loaded before or after.
        self._times[file] = modified_ns if modified_ns <= since_ns else 0


def _spec(name: str) -> object:
    """Return the module's spec, a new one after a reload, without waking modules that load lazily."""
    attributes = getattr(sys.modules.get(name), "__dict__", None)
    return cast("dict[str, object]", attributes).get("__spec__") if isinstance(attributes, dict) else None
