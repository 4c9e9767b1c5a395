"""Programs of asyncio that keep their own clocks: ``programs.py NAME CLOCKS`` runs one and writes its clocks.

A line that awaits through the clock ends in a comment with its name.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import random
import sys
import threading
import time
from collections.abc import AsyncIterator

from clocks import at, say, waits

draw = random.Random(26)


async def fetch(number: int) -> int:
    await at("fetch", asyncio.sleep(0.1 + 0.02 * number))  # fetch
    return number


async def gather() -> None:
    """Eighteen at once, in two rounds."""
    for _ in range(2):
        await asyncio.gather(*map(fetch, range(18)))


async def group() -> None:
    """A group of tasks, one of which starts others."""

    async def parent(tasks: asyncio.TaskGroup) -> None:
        for number in range(5):
            tasks.create_task(fetch(number))
            await at("pause", asyncio.sleep(0.05))  # pause

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(parent(tasks))
        tasks.create_task(fetch(20))


async def nested() -> None:
    """Coroutines that await coroutines: the line is the innermost."""

    async def inner() -> None:
        await at("inner", asyncio.sleep(0.2))  # inner

    async def middle() -> None:
        await inner()

    async def outer() -> None:
        await middle()

    for _ in range(4):
        await outer()


async def generator() -> None:
    """An asynchronous generator waits; who iterates it does, too, by its line."""

    async def pages() -> AsyncIterator[int]:
        for number in range(8):
            await at("page", asyncio.sleep(0.12))  # page
            yield number

    async def read() -> None:
        async for _ in pages():
            await at("store", asyncio.sleep(0.03))  # store

    await asyncio.gather(read(), read(), read())


async def queue() -> None:
    """Slow makers, more takers than there is work for."""
    work: asyncio.Queue[int] = asyncio.Queue(2)

    async def take() -> None:
        while await at("get", work.get()):  # get
            await at("work", asyncio.sleep(0.05))  # work

    async def make() -> None:
        for number in range(1, 8):
            await at("make", asyncio.sleep(0.1))  # make
            await work.put(number)

    takers = [asyncio.create_task(take()) for _ in range(5)]
    await asyncio.gather(make(), make())
    for _ in takers:
        await work.put(0)
    await asyncio.gather(*takers)


async def threads() -> None:
    """Functions in threads are awaited."""

    async def one() -> None:
        await at("thread", asyncio.to_thread(time.sleep, 0.25))  # thread

    for _ in range(3):
        await asyncio.gather(one(), one(), one())


def elsewhere() -> None:
    """A loop in another thread, while the main one waits for it."""
    thread = threading.Thread(target=lambda: asyncio.run(gather()))
    thread.start()
    thread.join()


def in_child() -> dict[str, list[tuple[int, int]]]:
    time.sleep(0.2)  # a new process is found within some 40 ms
    asyncio.run(gather())
    return waits


def child() -> None:
    """A loop in a child process, while this one waits for it."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        waits.update(pool.apply(in_child))


def forked() -> None:
    """A loop in a process that was forked within a loop: tasks of that one do not count in it."""

    async def keep() -> None:
        await at("kept", asyncio.sleep(3))  # kept

    async def fork() -> None:
        pause = asyncio.create_task(keep())
        await asyncio.sleep(0.05)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            noted = await asyncio.to_thread(pool.apply, in_child)
        await pause
        waits.update(noted | waits)

    asyncio.run(fork())


async def cancelled() -> None:
    """Waits that are given up, and one that is shielded."""

    async def shielded() -> None:
        inner = asyncio.create_task(asyncio.sleep(0.5))
        try:
            await at("shield", asyncio.wait_for(asyncio.shield(inner), 0.3))  # shield
        except TimeoutError:
            await at("rest", inner)  # rest

    async def given_up() -> None:
        try:
            await at("long", asyncio.sleep(60))  # long
        except asyncio.CancelledError:
            return

    tasks = [asyncio.create_task(given_up()) for _ in range(4)]
    await asyncio.gather(shielded(), shielded())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks)


async def stream() -> None:
    """A server that thinks, on loopback."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await at("think", asyncio.sleep(0.15))  # think
            writer.write(b"row\n")
        writer.close()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(4):
            writer.write(b"select\n")
            await at("answer", reader.readline())  # answer
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    await asyncio.gather(*(ask() for _ in range(6)))
    server.close()


async def tree() -> None:
    """Each task waits for two others, down to leaves that sleep."""

    async def grow(depth: int) -> None:
        if depth:
            await asyncio.gather(grow(depth - 1), grow(depth - 1))
        else:
            await at("leaf", asyncio.sleep(0.3))  # leaf

    for _ in range(3):
        await grow(5)


async def blocked() -> None:
    """A task computes for long; the others are ready meanwhile."""

    async def compute() -> None:
        for _ in range(3):
            await at("breath", asyncio.sleep(0.2))  # breath
            end = time.monotonic() + 0.4
            while time.monotonic() < end:
                pass

    await asyncio.gather(compute(), *map(fetch, range(10)))


async def in_turn() -> None:
    """One after the other, where all could wait at once."""
    for number in range(6):
        await fetch(number)


async def semaphore() -> None:
    """Three at once of twelve."""
    free = asyncio.Semaphore(3)

    async def one() -> None:
        await at("turn", free.acquire())  # turn
        try:
            await at("held", asyncio.sleep(0.15))  # held
        finally:
            free.release()

    await asyncio.gather(*(one() for _ in range(12)))


async def events() -> None:
    """An event, a condition and a lock."""
    event, lock = asyncio.Event(), asyncio.Lock()

    async def wait() -> None:
        await at("event", event.wait())  # event
        await at("lock", lock.acquire())  # lock
        await at("inside", asyncio.sleep(0.1))  # inside
        lock.release()

    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await at("before", asyncio.sleep(0.4))  # before
    event.set()
    await asyncio.gather(*tasks)


async def completed() -> None:
    """The first that are done come first; a time limit ends the last."""
    jobs = [asyncio.create_task(fetch(number)) for number in range(12)]
    for job in asyncio.as_completed(jobs):
        await job
    try:
        async with asyncio.timeout(0.5):
            await at("limited", asyncio.sleep(60))  # limited
    except TimeoutError:
        return


async def churn() -> None:
    """Many short tasks of random lengths."""

    async def short() -> None:
        await at("short", asyncio.sleep(draw.uniform(0.005, 0.1)))  # short

    async def lane() -> None:
        for _ in range(30):
            await asyncio.create_task(short())

    await asyncio.gather(*(lane() for _ in range(20)))


if __name__ == "__main__":
    program = globals()[sys.argv[1]]
    asyncio.run(program()) if inspect.iscoroutinefunction(program) else program()
    say(sys.argv[2])
