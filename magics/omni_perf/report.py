"""The report of a cell as Python sees it: data, files and something to display."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict, cast

from omni_perf import contract, program
from omni_perf.program import PathLike, local

Draw = Callable[[str, bytes], bytes]
"""Makes a format ("svg", "html", "text", "bundle") of a report's compressed JSON."""


class DrawError(Exception):
    """A report could not be drawn; the text is a sentence for the user."""


class SaveError(OSError):
    """A report is not, or not whole, where it was to be saved; the text is a sentence."""


class _Saved(TypedDict):
    """What ``omni-perf export --json`` tells."""

    written: list[str]
    saved: list[str]
    error: NotRequired[str]


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
    number: int = 0
    """Execution count of the cell."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report document."""
        return cast("dict[str, Any]", json.loads(gzip.decompress(self.compressed)))

    def save(self, name: PathLike, *formats: str) -> list[str]:
        """Write result files as ``omni-perf run -o NAME --format …`` does; return their paths.

        Without formats, a name that ends like one of them (.svg, .html, .json, .pb.gz …) is
        that one file, and NAME.svg and NAME.html else. The data need no sidecar.
        """
        arguments = ["export", "-", "--json", "--name", local(name)]
        if formats:
            arguments += ["--format", ",".join(formats)]
        try:
            done = program.run(arguments, self.compressed, capture_stdout=False)
        except program.ProgramError as error:
            raise SaveError(str(error)) from error
        said = done.stderr.decode(errors="replace").strip()
        try:
            told = cast("_Saved", json.loads(said))
        except ValueError:
            raise SaveError(said or f"omni-perf ended with code {done.returncode} and said nothing.") from None
        if told.get("error"):
            raise SaveError(told.get("error"))
        return told["written"]

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Answer IPython's display protocol; what cannot be drawn is a sentence."""
        if self.bundle:
            return bundle_part(self.bundle, "dataJson"), bundle_part(self.bundle, "metadataJson")
        try:
            drawn = cast("dict[str, dict[str, Any]]", json.loads(self.draw("bundle", self.compressed)))
        except DrawError as error:
            return {"text/plain": f"{self.headline}\nThe chart could not be drawn: {error}"}, {}
        return drawn["data"], drawn["metadata"]


def bundle_part(bundle: contract.Bundle, part: str) -> dict[str, Any]:
    """Return a part of a bundle as the object it encodes."""
    text = cast("dict[str, str]", bundle).get(part)
    return cast("dict[str, Any]", json.loads(text)) if text else {}


@dataclass
class Kept:
    """What ``omni_perf.last()`` returns."""

    last: Report | None = None


kept = Kept()
