"""The report of a cell as Python sees it: data, files and something to display."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from omni_perf import contract

Draw = Callable[[str, bytes], bytes]
"""Makes a format ("svg", "html", "text", "bundle") of a report's compressed JSON."""


class DrawError(Exception):
    """A report could not be drawn; the text is a sentence for the user."""


@dataclass(frozen=True)
class Report:
    """One recorded cell. The data are held here, so they outlive the sidecar."""

    report_id: str
    headline: str
    compressed: bytes = field(repr=False)
    """The report document, JSON in gzip, as sidecar/report/report.schema.json tells it."""
    bundle: contract.Bundle = field(repr=False)
    """The display bundle made at the cell's end; empty if none was wanted."""
    draw: Draw = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the report document."""
        return cast("dict[str, Any]", json.loads(gzip.decompress(self.compressed)))

    def save(self, name: str) -> list[str]:
        """Write NAME.svg, NAME.html or NAME.json; without an ending the first two."""
        base, ending = os.path.splitext(os.path.expanduser(name))
        if ending.lower() in (".svg", ".html", ".json"):
            endings = [ending]
        else:
            base, endings = base + ending, [".svg", ".html"]
        written: list[str] = []
        for each in endings:
            if each.lower() == ".json":
                content = gzip.decompress(self.compressed)
            else:
                content = self.draw(each[1:].lower(), self.compressed)
            _write_private(base + each, content)
            written.append(base + each)
        return written

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Answer IPython's display protocol; what cannot be drawn is a sentence."""
        bundle = self.bundle
        if not bundle:
            try:
                bundle = cast(contract.Bundle, json.loads(self.draw("bundle", self.compressed)))
            except DrawError as error:
                return {"text/plain": f"{self.headline}\nThe chart could not be drawn: {error}"}, {}
        return bundle_part(bundle, "dataJson"), bundle_part(bundle, "metadataJson")


def bundle_part(bundle: contract.Bundle, part: str) -> dict[str, Any]:
    """Return a part of a bundle as the object it encodes."""
    text = cast("dict[str, str]", bundle).get(part)
    return cast("dict[str, Any]", json.loads(text)) if text else {}


def _write_private(path: str, content: bytes) -> None:
    """Write a file that only its owner reads: a profile tells much about a program."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@dataclass
class Kept:
    """What ``omni_perf.last()`` returns."""

    last: Report | None = None


kept = Kept()
