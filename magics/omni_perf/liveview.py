"""The display of a cell that runs: a panel or a hint, in whose place the chart is put at last.

It is published from the loop's thread while the cell runs, under the header of the request
that the cell belongs to, and from the cell's own thread before and after.
"""

from __future__ import annotations

import html
import os
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from omni_perf import clearing
from omni_perf.permission import ptrace_scope
from omni_perf.publish import OURS
from omni_perf.shell import Shell, parent_header

Data = Mapping[str, Any]


class LiveView:
    """One display, which is there from its first content on. Methods may be called from any thread."""

    def __init__(self, shell: Shell) -> None:
        """A view of the cell that this thread runs."""
        self._shell = shell
        self._publisher: Any = shell.display_pub  # another one is there while a cell captures
        self._id = f"omni_perf-{uuid.uuid4().hex}"
        self._parent = parent_header(shell)
        self._lock = threading.Lock()
        self._shown = False
        self._closed = False
        self._cleared = False
        self._work: Future[object] | None = None
        clearing.watch(self._publisher, self)

    def clear_output_was_called(self) -> None:
        """Note it if it is the cell's own: cells may run side by side, and threads on after them."""
        if parent_header(self._shell) == self._parent:
            self._cleared = True

    def fed_by(self, work: Future[object] | None) -> None:
        """Take over what goes on until :meth:`close`."""
        with self._lock:
            self._work = work
            closed = self._closed
        if work is not None and closed:
            work.cancel()

    def show(self, data: Data, metadata: Data) -> bool:
        """Show this in place of what was shown; return False once nothing more is to be shown.

        A cell that clears its output has taken the display away, and may be about to show
        something else: then whatever comes in between would be in its way.
        """
        with self._lock:
            if self._closed or self._cleared:
                return False
            self._publish(data, metadata)
            return True

    def close(self) -> None:
        """Show nothing more of what goes on; a sentence may still be put in its place."""
        with self._lock:
            self._closed = True
            work = self._work
        if work is not None:
            work.cancel()
        clearing.leave(self._publisher, self)

    @property
    def place(self) -> str:
        """The id of the display that is there, as far as is known, or ""."""
        return self._id if self._shown and not self._cleared else ""

    def say(self, sentence: str) -> bool:
        """Put a sentence in the place of what was shown; return False if nothing is there."""
        if not self.place:
            return False
        self._publish(*note(sentence))
        return True

    def _publish(self, data: Data, metadata: Data) -> None:
        publisher = self._publisher
        update, self._shown = self._shown, True
        transient = {"display_id": self._id}
        session = getattr(publisher, "session", None)
        if session is None or self._parent is None:
            publisher.publish(data, metadata, transient=transient, update=update)
            return
        # As ZMQDisplayPublisher.publish does, without what belongs to the thread: its hooks,
        # its parent header, and the flush of streams that the cell is writing to.
        session.send(
            publisher.pub_socket,
            "update_display_data" if update else "display_data",
            {"data": dict(data), "metadata": dict(metadata), "transient": transient},
            parent=self._parent,
            ident=publisher.topic,
            metadata=dict(OURS),
        )


def note(sentence: str) -> tuple[Data, Data]:
    """Return a sentence as the content of a display."""
    return {
        "text/html": f'<div style="font-size:12px;opacity:.75">{html.escape(sentence)}</div>',
        "text/plain": sentence,
    }, {}


def hint() -> tuple[Data, Data]:
    """Return how to see a cell while it runs."""
    ways = ["%%omni_perf --live shows the next one here"]
    if may_be_read():
        ways.insert(0, f"omni-perf top {os.getpid()} in a terminal shows this one")
    return note("This cell is profiled; its chart comes at its end. To see it while it runs: " + "; ".join(ways) + ".")


def only_in_notebooks() -> str:
    """Return what to say where there is no display that could be updated."""
    return f"Cells are shown live in notebooks; omni-perf top {os.getpid()} in another terminal shows this process."


def may_be_read() -> bool:
    """Whether a process that is not our parent may read us, as far as Yama's setting shows."""
    return ptrace_scope() in ("", "0") or os.geteuid() == 0
