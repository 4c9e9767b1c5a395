"""What an interrupted run has measured, from which the next one goes on.

Thirty repetitions on each version take hours. They are kept after each of them, for the same
program, extension and cases only.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from truth.judging import Comparison
from truth.running import BINARY, CHECKOUT, Results

MEASURED = (CHECKOUT / "magics" / "omni_perf", Path(__file__).parent)


def build() -> str:
    """Return a hash of all that the figures depend on."""
    digest = hashlib.sha256(BINARY.read_bytes())
    for folder in MEASURED:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".txt"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


class Kept:
    """A file with the results of one environment."""

    def __init__(self, path: Path, build: str) -> None:
        self._path = path
        self._build = build
        self.results: Results = {}
        self.repetitions = 0
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return
        if found["build"] == build:
            self.repetitions = found["repetitions"]
            self.results = {name: _comparison(fields) for name, fields in found["cases"].items()}

    def count(self) -> None:
        """Count a repetition more of all cases and write all down."""
        self.repetitions += 1
        self.keep()

    def keep(self) -> None:
        """Write all down."""
        document = {
            "build": self._build,
            "repetitions": self.repetitions,
            "cases": {name: _fields(comparison) for name, comparison in self.results.items()},
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(document))
        beside.replace(self._path)


def _fields(comparison: Comparison) -> dict[str, object]:
    fields = vars(comparison).copy()
    for side in ("truth", "profile"):
        fields[side] = [[*place, seconds] for place, seconds in fields[side].items()]
    return fields


def _comparison(fields: dict[str, object]) -> Comparison:
    comparison = Comparison()
    for name, value in fields.items():
        if name in ("truth", "profile"):
            assert isinstance(value, list)
            value = {(file, line): seconds for file, line, seconds in value}
        setattr(comparison, name, value)
    return comparison
