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
from typing import Any, cast

from omni_perf import contract
from omni_perf.report import bundle_part
from omni_perf.shell import Shell, parent_header

Data = Mapping[str, Any]


class LiveView:
    """One display, which is there from its first content on. Methods may be called from any thread."""

    def __init__(self, shell: Shell) -> None:
        """Watch the display messages of this thread, which is the one that runs the cell."""
        self._shell = shell
        self._publisher: Any = shell.display_pub  # another one stands there while a cell captures
        self._id = f"omni_perf-{uuid.uuid4().hex}"
        self._parent = parent_header(shell)
        self._lock = threading.Lock()
        self._shown = False
        self._closed = False
        self._cleared = False
        self._work: Future[object] | None = None
        self._hooked = hasattr(self._publisher, "register_hook")
        if self._hooked:
            self._publisher.register_hook(self._seen)
        # ipykernel before 7 sends clear_output past the hooks.
        self._attributes = cast(dict[str, Any], vars(self._publisher))
        self._before = self._attributes.get("clear_output")
        self._clear: Any = getattr(self._publisher, "clear_output", None)
        if self._hooked and self._clear is not None:
            self._publisher.clear_output = self._clearing

    def _clearing(self, *args: Any, **keywords: Any) -> Any:
        self._cleared = True
        return self._clear(*args, **keywords)

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
        """Show nothing more until :meth:`conclude`; in the thread of the cell."""
        with self._lock:
            self._closed = True
            work = self._work
        if work is not None:
            work.cancel()
        if self._hooked:
            self._hooked = False
            self._publisher.unregister_hook(self._seen)
            if self._before is not None:
                self._publisher.clear_output = self._before
            else:
                self._attributes.pop("clear_output", None)

    @property
    def stands(self) -> bool:
        """Whether the display is there, as far as is known."""
        return self._shown and not self._cleared

    def conclude(self, bundle: contract.Bundle) -> None:
        """Put the chart in the place of what was shown, or behind the cell's output if there is nothing."""
        data, metadata = bundle_part(bundle, "dataJson"), bundle_part(bundle, "metadataJson")
        transient = bundle_part(bundle, "transientJson")
        if self.stands:
            transient["display_id"] = self._id
            self._shell.display_pub.publish(data, metadata, transient=transient, update=True)
        else:
            self._shell.display_pub.publish(data, metadata, transient=transient)

    def say(self, sentence: str) -> bool:
        """Put a sentence in the place of what was shown; return False if nothing is there."""
        if not self.stands:
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
            metadata={"omni_perf": "live"},  # the sidecar does not count it as the cell's output
        )

    def _seen(self, message: dict[str, Any]) -> dict[str, Any]:
        """Look at a message that the cell sends; a hook of ZMQDisplayPublisher."""
        if message.get("header", {}).get("msg_type") == "clear_output":
            self._cleared = True
        return message


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
    """Whether a process that is not our parent may read us, as far as Yama tells."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return file.read().strip() == "0" or os.geteuid() == 0
    except OSError:
        return True
