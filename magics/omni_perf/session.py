"""The kernel's session with its sidecar: starts it, greets it, calls it, replaces it.

Public methods may be called from any thread, wait a bounded time, and raise only
:class:`SessionError` with a sentence. What takes place in the loop's thread is private.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from omni_perf import announce, contract
from omni_perf._version import __version__
from omni_perf.cellsources import Known
from omni_perf.installation import installation
from omni_perf.launcher import Endpoint, LaunchError, end_process, is_stopped, launch
from omni_perf.looper import Looper, LoopLostError
from omni_perf.permission import Grant
from omni_perf.report import DrawError

if TYPE_CHECKING:
    from omni_perf.client import Client

START_LIMIT_S = 3.0
"""How long the first cell waits for a sidecar to start; it takes some 0.1 s."""

READY_LIMIT_S = 1.0
"""How long ``%omni_perf on`` waits for a sidecar that reads."""

BEGIN_LIMIT_S = 0.25
"""How long any cell waits for its recording to begin; then it runs, and is recorded from when it does."""

END_LIMIT_S = 10.0
"""How long the end of a cell waits for its chart."""

STOPPED_LIMIT_S = 0.25
"""How long it waits for a sidecar that does not run: one that was stopped (SIGSTOP)."""

LATE_LIMIT_S = 600.0
"""How long the call itself lasts that ends a recording: what nobody waits for any more is
still to be ended when a sidecar that was stopped goes on."""

AUTOMATIC_DELAY_S = 0.005
"""How much later than its cell a recording begins that the cell did not ask for: a trivial
cell is over by then and waits for none of our work; one with a chart lacks 0.5 % at most."""

CALL_LIMIT_S = 10.0

ENDING_LIMIT_S = 1.0
"""How long a call waits for the ends of cells before it that nobody waited for."""

CLOSE_LIMIT_S = 1.0

RETRY_AFTER_S = 30.0
"""Cells recorded automatically do not try to start a sidecar again for this long."""

_Answer = TypeVar("_Answer")

Sources = Callable[[Known], list[contract.CellSource]]
"""Gives the cells that a sidecar with this knowledge lacks."""


class SessionError(DrawError):
    """What was asked of the sidecar did not happen; the text says why in a sentence."""


class SidecarStoppedError(SessionError):
    """The sidecar lives, but does not run."""


@dataclass
class Link:
    """One sidecar that was greeted, and what was sent to it so far."""

    client: Client
    looper: Looper
    """The loop that the client's connection lives in."""
    outside: str = ""
    reason: str = ""
    notes: list[str] = field(default_factory=list[str])
    known: Known = field(default_factory=Known)
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    """Times of modules' files that were sent to the sidecar."""
    pushing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by a call that must not overtake, or be overtaken by, fallback samples: each
    batch leans on the frames of those before, and the end of a cell on all of them."""

    def remember(self, sources: list[contract.CellSource]) -> None:
        """Note that the sidecar holds these cells."""
        self.known.update((source.get("file", ""), source.get("executionCount", 0)) for source in sources)

    def remember_loads(self, loads: list[contract.Loaded]) -> None:
        """Note that these modules were sent to the sidecar."""
        self.loaded.update((load.get("file", ""), int(load.get("modifiedNs", "0"))) for load in loads)


@dataclass(frozen=True)
class Begun:
    """A recording runs: on this sidecar, since then, with stacks read this way."""

    link: Link
    cell_id: str
    started_ns: int
    outside: str


class Session:
    """The one session of this kernel process; ``launch`` is replaced in tests."""

    def __init__(
        self, connection_file: str = "", start: Callable[[str, float], Endpoint] = launch, notebook: str = ""
    ) -> None:
        """``notebook`` distinguishes it, for what is kept of a kernel that dies; empty: nothing is kept."""
        self._connection_file = connection_file
        self._notebook = notebook
        self._start = start
        self._lock = threading.Lock()
        self._looper: Looper | None = None
        self._link: Link | None = None
        self._connecting: asyncio.Lock | None = None
        self._ending: set[asyncio.Task[Any]] = set()
        """Calls in the loop that end a recording and whose answer no cell waits for."""
        self._grant = Grant()
        self._failed_at = -RETRY_AFTER_S
        self._failure = ""
        self._pid = os.getpid()
        self._forgot = False

    @property
    def forgot(self) -> bool:
        """Whether a sidecar ended, or was lost, by no wish of ours, and what it kept of cells with it."""
        return self._forgot or (self._link is not None and bool(self._link.client.gone_at_ns))

    @property
    def link(self) -> Link | None:
        """The sidecar in use, if one was started and not seen to end."""
        link = self._link
        return link if link is not None and not link.client.gone_at_ns else None

    @property
    def _own_link(self) -> Link | None:
        """The sidecar in use, unless this is a fork of the kernel, which has another one's."""
        return self.link if os.getpid() == self._pid else None

    def begin(
        self, request: contract.BeginRequest, sources: Sources, patient: bool
    ) -> concurrent.futures.Future[Begun]:
        """Begin a recording; see :meth:`begun`. ``sources`` gives the cells not yet known.

        ``patient`` is for cells that asked to be recorded: they are recorded from their
        start, and try to start a sidecar even if the last try has just failed.
        """
        if not patient and time.monotonic() - self._failed_at < RETRY_AFTER_S:
            raise SessionError(self._failure)
        if patient:
            return self._submit_anew(lambda looper: self._begin(looper, request, sources))
        link = self._own_link
        if link is not None:
            complete: contract.BeginRequest = {**request, "ownThreads": [link.looper.native_id]}
            announce.begins(link.client.endpoint, complete, AUTOMATIC_DELAY_S)
        return self._submit_anew(lambda looper: self._begin_later(looper, request, sources, link))

    def has_begun(self, beginning: concurrent.futures.Future[Begun]) -> bool:
        """Wait for a recording to begin, in front of its cell; False if it takes too long: it may begin later."""
        deadline = time.monotonic() + START_LIMIT_S
        try:
            while self.link is None and time.monotonic() < deadline:  # the sidecar starts
                if concurrent.futures.wait([beginning], 0.01).done:
                    break
            if not concurrent.futures.wait([beginning], BEGIN_LIMIT_S).done:
                return False
        except KeyboardInterrupt:
            beginning.cancel()
            raise
        _wait(beginning, 0)
        return True

    def begun(self, beginning: concurrent.futures.Future[Begun], waited_s: float) -> Begun:
        """Return how a recording began, at the end of its cell; the cell has waited for so long."""
        if not beginning.done():
            if (link := self.link) is not None and is_stopped(link.client.endpoint.pid):
                beginning.cancel()
                _raise_if_stopped(link)
            if not concurrent.futures.wait([beginning], BEGIN_LIMIT_S).done:
                beginning.cancel()
                raise SessionError(f"The sidecar did not answer within {waited_s + BEGIN_LIMIT_S:.1f} s.")
        return _wait(beginning, 0)

    def get_ready(self) -> None:
        """Start a sidecar, unless one runs, and wait until it reads; not long: it may be ready later."""
        future = self._submit_anew(self._connected_first)
        if concurrent.futures.wait([future], READY_LIMIT_S).done:
            _wait(future, 0)

    def get_ready_later(self) -> None:
        """Start a sidecar, unless one runs, and wait for nothing."""
        self._submit_anew(self._connected_first)

    def end(self, begun: Begun, request: contract.EndRequest, patience_s: float = 0) -> contract.EndResponse:
        """End a recording and return its bundle; the recording ends also if nobody waits so long.

        ``patience_s`` is how much longer than usual to wait for it.
        """
        future = self._submit(self._end(begun, request), begun.link.looper)
        return _wait_unless_stopped(future, lambda: begun.link, END_LIMIT_S + patience_s)

    def end_later(self, beginning: concurrent.futures.Future[Begun], request: contract.EndRequest) -> None:
        """End a recording, which may not have begun yet, and whose answer nobody waits for."""
        looper, link = self._looper, self._own_link
        if looper is not None:
            if link is not None:
                announce.is_over(link.client.endpoint, request.get("cellId", ""))
            self._send(self._end_after(beginning, request), looper)

    def push_later(self, begun: Begun, request: contract.PushRequest) -> None:
        """Hand over samples of the in-kernel sampler; order is kept, loss is not reported."""
        self._send(self._push(begun.link, request), begun.link.looper)

    def call(self, method: str, request: Mapping[str, Any]) -> Any:
        """Call a method that concerns no running cell; starts a sidecar if there is none."""
        future = self._submit_anew(lambda looper: self._greeted_call(looper, method, request))
        try:
            return _wait_unless_stopped(future, lambda: self.link, START_LIMIT_S + CALL_LIMIT_S)
        finally:
            future.cancel()  # changes nothing once it is done

    def draw(self, form: str, compressed: bytes) -> bytes:
        """Draw a report document: what :class:`omni_perf.report.Report` needs."""
        request: contract.ReportRequest = {
            "format": form,
            "reportGzip": base64.b64encode(compressed).decode(),
        }
        answer = cast(contract.ReportResponse, self.call("Report", request))
        return base64.b64decode(answer.get("content", ""))

    def watch_later(
        self,
        begun: Begun,
        delay_s: float,
        progress: Callable[[], contract.LiveRequest],
        show: Callable[[contract.LiveResponse | SessionError], bool],
    ) -> concurrent.futures.Future[Any] | None:
        """Ask what a cell is doing about once a second, from delay_s on, while show returns True.

        Both functions are called in the loop's thread. To be cancelled at the end of the cell;
        None if the loop is lost.
        """
        return self._send(self._watch(begun, delay_s, progress, show), begun.link.looper)

    def after(self, begun: Begun, delay_s: float, then: Callable[[], object]) -> concurrent.futures.Future[Any] | None:
        """Call then in the loop's thread, delay_s from now, unless it is cancelled."""
        return self._send(_call_after(delay_s, then), begun.link.looper)

    def repeat(self, done: Callable[[], bool]) -> None:
        """Call done in the loop's thread until it returns True, more and more rarely."""
        link = self.link
        if link is not None:
            self._submit(_repeat(done), link.looper)

    def close(self) -> None:
        """End the sidecar and the loop."""
        with self._lock:
            link, self._link, looper, self._looper = self._link, None, self._looper, None
        self._grant.withdraw()
        if looper is None:
            return
        if link is not None and looper.usable:
            try:
                _wait(self._submit(_retire(link.client), looper), CLOSE_LIMIT_S)
            except SessionError:
                pass
        looper.close()

    # In the caller's thread.

    def _send(self, coroutine: Coroutine[Any, Any, object], looper: Looper) -> concurrent.futures.Future[Any] | None:
        try:
            return self._submit(coroutine, looper)
        except SessionError:
            return None

    def _submit_anew(
        self, make: Callable[[Looper], Coroutine[Any, Any, _Answer]]
    ) -> concurrent.futures.Future[_Answer]:
        """Run a coroutine in the loop, in a new one if a cell closed its descriptors."""
        if os.getpid() != self._pid:
            raise SessionError("This is a fork of the kernel: only the kernel itself talks to the sidecar.")
        with self._lock:
            if self._looper is not None:
                try:
                    return self._looper.submit(make(self._looper))
                except LoopLostError:
                    self._looper.close()
            if self._link is not None:
                self._forgot = True
                end_process(self._link.client.endpoint)
            self._link = None
            self._connecting, self._ending = asyncio.Lock(), set()
            try:
                self._looper = Looper()
            except (OSError, RuntimeError) as error:  # no descriptor, no thread left
                raise SessionError(f"The profiler could not start its thread: {error}.") from error
            return self._submit(make(self._looper), self._looper)

    def _submit(self, coroutine: Coroutine[Any, Any, _Answer], looper: Looper) -> concurrent.futures.Future[_Answer]:
        try:
            return looper.submit(coroutine)
        except LoopLostError:
            raise SessionError("The connection to the sidecar was lost.") from None

    # In the loop's thread.

    async def _begin_later(
        self, looper: Looper, request: contract.BeginRequest, sources: Sources, announced: Link | None
    ) -> Begun:
        """Begin a recording that was announced to this sidecar, which begins it by itself where this is too late."""
        before = set(self._ending)
        try:
            await asyncio.sleep(AUTOMATIC_DELAY_S)
            return await self._begin(looper, request, sources, before)
        except asyncio.CancelledError:
            if announced is not None:
                self._send(self._abandon(announced, request.get("cellId", "")), looper)
            raise

    async def _begin(
        self,
        looper: Looper,
        request: contract.BeginRequest,
        sources: Sources,
        before: set[asyncio.Task[Any]] | None = None,
    ) -> Begun:
        before = set(self._ending) if before is None else before
        try:
            if before:  # else a cell that is over would share its recording with this one
                await asyncio.wait(before, timeout=CALL_LIMIT_S)
            begun = await self._on_living(looper, lambda link: self._begin_on(link, request, sources))
        except SessionError as error:
            self._failed_at, self._failure = time.monotonic(), str(error)
            raise
        self._failed_at = -RETRY_AFTER_S
        return begun

    async def _connected_first(self, looper: Looper) -> None:
        """Start a sidecar before there is a cell for it."""
        try:
            await self._connected(looper)
        except SessionError as error:
            self._failed_at, self._failure = time.monotonic(), str(error)
            raise
        self._failed_at = -RETRY_AFTER_S

    async def _begin_on(self, link: Link, request: contract.BeginRequest, sources: Sources) -> Begun:
        new = sources(link.known)
        # A cell that waits for us starts now; one that does not said when it has started.
        started_ns = int(request.get("startedNs", 0)) or time.monotonic_ns()
        complete: contract.BeginRequest = {
            **request,
            "sources": new,
            "startedNs": str(started_ns),
            "ownThreads": [link.looper.native_id],
        }
        try:
            limit_s = CALL_LIMIT_S if request.get("automatic") else LATE_LIMIT_S
            answer = cast(contract.BeginResponse, await self._call(link, "Begin", complete, limit_s))
        except (SessionError, asyncio.CancelledError):
            self._send(self._abandon(link, request.get("cellId", "")), link.looper)
            raise
        link.remember(new)
        outside = answer.get("outside", link.outside)
        if outside == "permission":
            await self._greet(link)
            outside = link.outside
        return Begun(link, request.get("cellId", ""), started_ns, outside)

    async def _abandon(self, link: Link, cell_id: str) -> None:
        """End a recording that may have begun although nobody waited for it any more."""
        ending: contract.EndRequest = {"cellId": cell_id, "endedNs": str(time.monotonic_ns()), "quiet": True}
        await self._call(link, "End", ending, LATE_LIMIT_S)

    async def _end_after(self, beginning: concurrent.futures.Future[Begun], request: contract.EndRequest) -> None:
        ending = cast("asyncio.Task[Any]", asyncio.current_task())
        self._ending.add(ending)
        try:
            await self._end(await asyncio.wrap_future(beginning), request)
        finally:
            self._ending.discard(ending)

    async def _end(self, begun: Begun, request: contract.EndRequest) -> contract.EndResponse:
        complete: contract.EndRequest = {**request, "cellId": begun.cell_id}
        async with begun.link.pushing:
            pass
        return await self._call(begun.link, "End", complete, LATE_LIMIT_S)

    async def _watch(
        self,
        begun: Begun,
        delay_s: float,
        progress: Callable[[], contract.LiveRequest],
        show: Callable[[contract.LiveResponse | SessionError], bool],
    ) -> None:
        await asyncio.sleep(delay_s)
        goes_on = True
        while goes_on:
            request: contract.LiveRequest = {"cellId": begun.cell_id, **progress()}
            try:
                answer: contract.LiveResponse = await self._call(begun.link, "Live", request, CALL_LIMIT_S)
            except SidecarStoppedError:  # it may go on
                await asyncio.sleep(1)
                continue
            except SessionError as error:
                show(error)
                return
            goes_on = show(answer)
            await asyncio.sleep(int(answer.get("pauseNs", "0")) / 1e9 or 1)

    async def _push(self, link: Link, request: contract.PushRequest) -> None:
        async with link.pushing:
            await self._call(link, "Push", request, CALL_LIMIT_S)

    async def _greeted_call(self, looper: Looper, method: str, request: Mapping[str, Any]) -> Any:
        if self._ending:  # cells that are over are known to what is called behind them
            await asyncio.wait(set(self._ending), timeout=ENDING_LIMIT_S)
        return await self._on_living(looper, lambda link: self._call(link, method, request, CALL_LIMIT_S))

    async def _on_living(self, looper: Looper, ask: Callable[[Link], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Ask the sidecar; a new one if it has ended since it was last heard of."""
        link = await self._connected(looper)
        try:
            return await ask(link)
        except SessionError:
            if not link.client.gone_at_ns:
                raise
            return await ask(await self._connected(looper))

    async def _call(self, link: Link, method: str, request: Mapping[str, Any], limit: float) -> Any:
        from omni_perf.client import SidecarError, SidecarSlowError

        try:
            return await link.client.call(method, request, limit)
        except SidecarError as error:
            if isinstance(error, SidecarSlowError):
                _raise_if_stopped(link)
            raise SessionError(str(error)) from error

    async def _connected(self, looper: Looper) -> Link:
        """Return the living sidecar, started now if there is none."""
        assert self._connecting is not None
        async with self._connecting:
            if self.link is None:
                if self._link is not None:
                    self._forgot = True
                    await _retire(self._link.client)
                self._link = await self._connect(looper)
            return cast(Link, self._link)

    async def _connect(self, looper: Looper) -> Link:
        try:
            from omni_perf.client import Client

            endpoint = self._start(__version__, START_LIMIT_S)
        except LaunchError as error:
            raise SessionError(str(error)) from error
        except ImportError as error:
            raise SessionError(f"The profiler needs a package that is missing: {error}.") from error
        client = Client(endpoint)
        watch = client.process_watch()
        if watch is not None:
            looper.watch(*watch)
        link = Link(client, looper)
        try:
            await self._greet(link)
        except SessionError:
            await _retire(client)
            raise
        return link

    async def _greet(self, link: Link) -> None:
        """Say Hello; grant the sidecar permission to read us if it lacks only that."""
        answer = await self._hello(link)
        if answer.get("outside") == "permission" and self._grant.give(link.client.endpoint.pid):
            answer = await self._hello(link)
        if answer.get("refusal"):
            raise SessionError(answer.get("refusal", ""))
        link.outside = answer.get("outside", "")
        link.reason = answer.get("reason", "")
        link.notes = answer.get("notes", [])

    async def _hello(self, link: Link) -> contract.HelloResponse:
        request: contract.HelloRequest = {
            "version": __version__,
            "api": contract.API,
            "pid": os.getpid(),
            "pythonVersion": platform.python_version(),
            "interpreter": sys.executable,
            "implementation": sys.implementation.name,
            "freeThreaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
            "connectionFile": self._connection_file,
            "installation": installation(),
            "notebook": self._notebook,
        }
        return await self._call(link, "Hello", request, START_LIMIT_S)


def _wait(future: concurrent.futures.Future[_Answer], limit: float) -> _Answer:
    """Wait in the caller's thread; an interrupt gives the call up."""
    try:
        return future.result(limit)
    except TimeoutError:
        future.cancel()
        raise SessionError(f"The sidecar did not answer within {limit:g} s.") from None
    except concurrent.futures.CancelledError:
        raise SessionError("The call to the sidecar was given up.") from None
    except KeyboardInterrupt:
        future.cancel()
        raise


def _wait_unless_stopped(
    future: concurrent.futures.Future[_Answer], link: Callable[[], Link | None], limit: float
) -> _Answer:
    """Wait in the caller's thread; STOPPED_LIMIT_S for a sidecar that does not run."""
    deadline = time.monotonic() + limit
    while not concurrent.futures.wait([future], STOPPED_LIMIT_S).done:
        asked = link()
        if asked is not None:
            _raise_if_stopped(asked)
        if time.monotonic() > deadline:
            raise SessionError(f"The sidecar did not answer within {limit:g} s.")
    return _wait(future, 0)


def _raise_if_stopped(link: Link) -> None:
    pid = link.client.endpoint.pid
    if is_stopped(pid):
        raise SidecarStoppedError(f"The sidecar (process {pid}) is stopped; kill -CONT {pid} lets it go on.")


async def _repeat(done: Callable[[], bool]) -> None:
    pause_s = 0.05
    await asyncio.sleep(pause_s)
    while not done():
        await asyncio.sleep(pause_s)
        pause_s = min(1.0, 1.5 * pause_s)


async def _call_after(delay_s: float, then: Callable[[], object]) -> None:
    await asyncio.sleep(delay_s)
    then()


async def _retire(client: Client) -> None:
    """Close the connection and see to it that the sidecar ends."""
    client.close()
    end_process(client.endpoint)
