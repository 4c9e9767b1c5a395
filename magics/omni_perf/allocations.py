"""Runs memray's tracker around a cell, for ``%%omni_perf --memory exact``: docs/memory.md, "Every allocation".

memray is not ours and need not be there. What it recorded is read in this process when the cell is over, and the
sidecar gets the stacks with most bytes: what was allocated at the peak, and what the cell left.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import tempfile
import time
from contextlib import suppress
from typing import Any

from omni_perf import contract

MOST_STACKS = 2_000
"""Stacks that are sent, those with most bytes; of the others only the sum is known."""
MOST_FRAMES = 64
"""Of one stack, innermost first."""


class Allocations:
    """One cell's recording."""

    def __init__(self) -> None:
        self.problem = ""
        """Why nothing is recorded, a sentence."""
        self._memray: Any = None
        self._tracker: Any = None
        self._folder = ""
        if importlib.util.find_spec("memray") is None:
            self.problem = (
                "--memory exact needs memray, which is not installed: %pip install memray. "
                "The cell is profiled without it."
            )
            return
        try:
            self._memray = importlib.import_module("memray")
        except Exception as error:
            self.problem = f"memray could not be imported: {error}. The cell is profiled without it."

    def begin(self) -> None:
        """Start the tracker; it costs the cell time from now on."""
        memray = self._memray
        if memray is None:
            return
        try:
            self._folder = tempfile.mkdtemp(prefix="omni_perf-memray-")
            form = memray.FileFormat.AGGREGATED_ALLOCATIONS  # else it may be many gigabytes
            tracker = memray.Tracker(os.path.join(self._folder, "cell.bin"), file_format=form)
            tracker.__enter__()
            self._tracker = tracker
        except Exception as error:  # such as one that is running already
            self.problem = f"memray could not record this cell: {error}."
            self._remove()

    def end(self) -> None:
        """Stop the tracker."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            try:
                tracker.__exit__(None, None, None)
            except Exception as error:
                self.problem = f"memray could not end its recording: {error}."
                self._remove()

    def result(self) -> contract.Allocations | None:
        """Return what was recorded, once."""
        if not self._folder:
            return None
        began = time.monotonic()
        try:
            memray = self._memray
            with memray.FileReader(os.path.join(self._folder, "cell.bin")) as reader:
                found = _summary(reader)
            found["tool"] = f"memray {memray.__version__}"
            found["readingNs"] = str(round((time.monotonic() - began) * 1e9))
            return found
        except Exception as error:
            self.problem = f"What memray recorded of this cell could not be read: {error}."
            return None
        finally:
            self._remove()

    def _remove(self) -> None:
        folder, self._folder = self._folder, ""
        if folder:
            with suppress(OSError):
                shutil.rmtree(folder)


def _summary(reader: Any) -> contract.Allocations:
    """Sum up by stack what was allocated at the peak, and what is left of the cell."""
    stacks: dict[tuple[tuple[str, str, int], ...], list[int]] = {}
    peak = kept = 0
    for column, records in (
        (0, reader.get_high_watermark_allocation_records(merge_threads=True)),
        (2, reader.get_leaked_allocation_records(merge_threads=True)),
    ):
        for record in records:
            stack = tuple(record.stack_trace(MOST_FRAMES)) if record.stack_id else ()
            row = stacks.setdefault(stack, [0, 0, 0])
            row[column] += record.size
            if column == 0:
                row[1] += record.n_allocations
                peak += record.size
            else:
                kept += record.size
    most = sorted(stacks.items(), key=lambda item: max(item[1][0], item[1][2]), reverse=True)
    return {
        "allocations": str(reader.metadata.total_allocations),
        "peakBytes": str(peak),
        "keptBytes": str(kept),
        "stacks": [
            {
                "stack": [{"file": file, "line": line, "function": function} for function, file, line in stack],
                "peakBytes": str(row[0]),
                "peakAllocations": str(row[1]),
                "keptBytes": str(row[2]),
            }
            for stack, row in most[:MOST_STACKS]
        ],
    }
