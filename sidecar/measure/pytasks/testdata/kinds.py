"""Tasks that wait in every way there is; prints what the program itself says of each, then waits."""

import asyncio
import gc
import json
import sys
import threading
import time
import types


async def leaf():
    await asyncio.sleep(60)


async def middle():
    await leaf()


async def nested():
    await middle()


async def gathers():
    await asyncio.gather(named(leaf(), "gathered-a"), named(leaf(), "gathered-b"))


async def groups():
    if not hasattr(asyncio, "TaskGroup"):
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="grouped")


async def queues(queue):
    await queue.get()


async def times_out():
    await asyncio.wait_for(leaf(), 60)


async def shields():
    await asyncio.shield(named(leaf(), "shielded"))


async def waits():
    await asyncio.wait([named(leaf(), "waited-for")])


async def in_a_thread():
    await asyncio.to_thread(time.sleep, 60)


async def locked(lock):
    async with lock:
        pass


async def limited(semaphore):
    async with semaphore:
        await leaf()


async def generates():
    await leaf()
    yield 1


async def iterates():
    async for _ in generates():
        pass


async def nexts():
    await anext(generates(), None)


class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(60).__await__()


async def custom():
    await Awaitable()


@types.coroutine
def old_style():
    yield from asyncio.sleep(60).__await__()


async def uses_old_style():
    await old_style()


async def awaits_task():
    await named(middle(), "awaited")


async def cancelled():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await leaf()


def deep(n):
    async def step(k):
        if k:
            await step(k - 1)
        else:
            await leaf()

    return step(n)


def named(coroutine, name):
    return asyncio.get_running_loop().create_task(coroutine, name=name)


def begin(loop):
    lock = asyncio.Lock()
    semaphore = asyncio.Semaphore(1)

    async def all_of_them():
        await lock.acquire()
        named(nested(), "nested")
        named(gathers(), "gathers")
        named(groups(), "groups")
        named(queues(asyncio.Queue()), "queues")
        named(times_out(), "times-out")
        named(shields(), "shields")
        named(waits(), "waits")
        named(in_a_thread(), "in-a-thread")
        named(locked(lock), "locked")
        named(limited(semaphore), "limited-a")
        named(limited(semaphore), "limited-b")
        named(iterates(), "iterates")
        named(nexts(), "nexts")
        named(custom(), "custom")
        named(uses_old_style(), "old-style")
        named(awaits_task(), "awaits-task")
        named(deep(30), "deep")
        named(leaf(), "n\u00e4me \U0001f40d \x1b[31m <b>" + "x" * 300)
        asyncio.get_running_loop().create_task(leaf())
        loser = named(cancelled(), "cancelled")
        await asyncio.sleep(0.1)
        loser.cancel()
        await asyncio.sleep(0.1)
        await asyncio.sleep(60)

    loop.create_task(all_of_them(), name="first")


def step(awaited):
    """The object with a frame behind what is awaited, and that frame; None at the chain's end."""
    for _ in range(3):
        for frame in ("cr_frame", "gi_frame", "ag_frame"):
            if getattr(awaited, frame, None) is not None:
                return awaited, getattr(awaited, frame)
        if type(awaited).__name__ not in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"):
            return None
        referents = [o for o in gc.get_referents(awaited) if type(o).__name__ in ("coroutine", "async_generator", "generator", "async_generator_asend")]
        if not referents:
            return None
        awaited = referents[0]
    return None


def chain(task):
    out, at = [], task.get_coro()
    while at is not None and (found := step(at)) is not None:
        owner, frame = found
        out.append([frame.f_code.co_qualname, frame.f_lineno])
        at = next(getattr(owner, name) for name in ("cr_await", "gi_yieldfrom", "ag_await") if hasattr(owner, name))
    return out


def main():
    loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]
    closed = asyncio.new_event_loop()
    left = closed.create_task(leaf(), name="of a closed loop")
    stopped = asyncio.new_event_loop()
    stopped.create_task(leaf(), name="of a loop that does not run")

    def run(loop):
        asyncio.set_event_loop(loop)
        begin(loop)
        loop.run_forever()

    for loop in loops:
        threading.Thread(target=run, args=(loop,), daemon=True).start()
    time.sleep(0.6)
    said = [{"name": t.get_name(), "chain": chain(t)} for loop in loops for t in asyncio.all_tasks(loop)]
    # Whoever asks for a name makes it a text.
    print(json.dumps(said), flush=True)
    sys.stdin.readline()


main()
