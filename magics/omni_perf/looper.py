"""A private asyncio loop in a daemon thread, for the channel to the sidecar.

Two things may pull the floor from under it, and neither may harm user code:

fork: the child has the loop's objects but not its thread. Nothing is used there.

A cell that closes all file descriptors: the numbers of the loop's own descriptors may
then belong to the user's files. So each is remembered with its inode and checked before
use; when one is no longer ours the loop is abandoned, that is never touched or closed
again, and a new one is made.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import selectors
import stat
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from omni_perf import silence

_Answer = TypeVar("_Answer")

_abandoned: list[object] = []
"""Loops whose descriptors are lost: kept alive for ever, since their end would close them."""


class LoopLostError(Exception):
    """The loop's file descriptors were closed, or this process is a fork."""


class _Selector(selectors.DefaultSelector):
    """A selector that stops its loop when a descriptor is no longer the loop's own."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._owned: dict[int, tuple[int, int]] = {}
        self._wakened = -1
        """The reading end of the loop's self-pipe, the first one registered."""

    def own(self, descriptor: int) -> None:
        """Remember which socket a descriptor stands for."""
        status = os.fstat(descriptor)
        if stat.S_ISSOCK(status.st_mode):
            self._owned[descriptor] = (status.st_dev, status.st_ino)

    def intact(self) -> bool:
        """Whether every socket is still the loop's own. From any thread."""
        return all(map(self._is_own, list(self._owned)))

    def _is_own(self, descriptor: int) -> bool:
        """Whether a descriptor is the socket it was, or the loop's thread has given it up just now."""
        remembered = self._owned.get(descriptor)
        if remembered is None:
            return True
        try:
            status = os.fstat(descriptor)
            found = (status.st_dev, status.st_ino)
        except OSError:
            found = None
        return found == remembered or self._owned.get(descriptor) != remembered

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self.own(key.fd)
        if self._wakened < 0:
            self._wakened = key.fd
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if os.getpid() != self._pid:
            return self.get_key(fileobj)
        return super().modify(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        # A forked child shares the epoll object: when it finalises its copies of our
        # connection it must not take the parent's descriptors out.
        if os.getpid() != self._pid:
            return self.get_key(fileobj)
        key = super().unregister(fileobj)
        self._owned.pop(key.fd, None)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        # One check a turn, since each waits for the GIL beside a busy cell. Callbacks only
        # follow for descriptors that are open: what is closed, epoll forgets by itself.
        if not self._is_own(self._wakened):
            raise LoopLostError
        return ready


class Looper:
    """Runs coroutines in the daemon thread; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._selector = _Selector()
        silence.install()
        with silence.silenced():
            self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_debug(False)  # whatever the user set for loops of their own
        self._loop.set_exception_handler(_stay_silent)
        waker: Any = getattr(self._loop, "_csock", None)
        if waker is not None:
            self._selector.own(waker.fileno())
        self._thread = threading.Thread(target=self._run, name="omni_perf", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def native_id(self) -> int:
        """The thread's id for the operating system."""
        return self._thread.native_id or 0

    @property
    def usable(self) -> bool:
        """Whether coroutines can still be run here."""
        return os.getpid() == self._pid and self._thread.is_alive() and self._selector.intact()

    def submit(self, coroutine: Coroutine[Any, Any, _Answer]) -> concurrent.futures.Future[_Answer]:
        """Run a coroutine in the loop; raise LoopLostError when there is none any more."""
        if not self.usable:
            coroutine.close()
            raise LoopLostError
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def watch(self, descriptor: int, then: Callable[[], None]) -> None:
        """Call then in the loop's thread once descriptor is readable. In the loop only."""

        def ready() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            then()

        self._loop.add_reader(descriptor, ready)

    def close(self) -> None:
        """End the thread and close what is ours."""
        atexit.unregister(self.close)
        if not self.usable:
            _abandoned.append(self)
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    def _run(self) -> None:
        silence.silence_this_thread()
        try:
            self._loop.run_forever()
        except (LoopLostError, OSError, ValueError):
            _abandoned.append(self)
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        try:
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()
        except (LoopLostError, OSError):
            _abandoned.append(self)


def _stay_silent(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Errors of calls reach their callers; nothing is printed into the notebook."""
