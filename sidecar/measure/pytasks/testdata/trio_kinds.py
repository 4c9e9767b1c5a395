"""Tasks of trio that wait in every way there is; prints what trio itself says of each, then waits."""

import contextlib
import gc
import json
import sys
import threading
import time
import types

import trio
import trio.testing


async def leaf():
    await trio.sleep(60)


async def middle():
    await leaf()


async def nested():
    await middle()


async def groups():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leaf, name="grouped")


async def parks():
    await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)


async def channel(receive):
    await receive.receive()


async def times_out():
    with trio.move_on_after(60):
        await trio.Event().wait()


async def in_a_thread():
    await trio.to_thread.run_sync(time.sleep, 60)


async def locked(lock):
    async with lock:
        await trio.sleep_forever()


async def items():
    await trio.sleep(60)
    yield 1


async def iterates():
    async for _ in items():
        pass


async def next_of():
    await anext(items())


class Waits:
    def __await__(self):
        return leaf().__await__()


async def by_await():
    await Waits()


@types.coroutine
def decorated():
    yield from leaf().__await__()


async def by_generator():
    await decorated()


@contextlib.asynccontextmanager
async def context():
    await trio.sleep(60)
    yield


async def enters():
    async with context():
        pass


async def reads(socket):
    await socket.recv(1)


async def shielded():
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


SUSPENDED = {"coroutine", "generator", "async_generator", "async_generator_asend", "async_generator_athrow"}


def walk(coroutine):
    """Return the functions and lines that a coroutine is suspended in, by its own attributes."""
    while coroutine is not None:
        for letter in "cr", "gi", "ag":
            if frame := getattr(coroutine, letter + "_frame", None):
                yield frame.f_code.co_qualname, frame.f_lineno
                coroutine = getattr(coroutine, "gi_yieldfrom" if letter == "gi" else letter + "_await")
                break
        else:
            coroutine = next((o for o in gc.get_referents(coroutine) if type(o).__name__ in SUSPENDED), None)


def say(names):
    found = []
    stack = [trio.lowlevel.current_root_task()]
    while stack:
        task = stack.pop()
        stack += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        if task is not trio.lowlevel.current_task():
            found.append({"Name": task.name, "Chain": list(walk(task.coro))})
    names.append(found)


async def elsewhere(names, ready):
    async with trio.open_nursery() as nursery:
        for function in nested, times_out:
            nursery.start_soon(function, name="elsewhere-" + function.__name__)
        await trio.testing.wait_all_tasks_blocked()
        say(names)
        ready.set()
        time.sleep(60)


async def main():
    names, ready = [], threading.Event()
    threading.Thread(target=trio.run, args=(elsewhere, names, ready), daemon=True).start()
    ready.wait()
    lock = trio.Lock()
    _send, receive = trio.open_memory_channel(0)
    one, _other = trio.socket.socketpair()
    async with trio.open_nursery() as nursery:
        for function in (
            nested,
            groups,
            parks,
            times_out,
            in_a_thread,
            iterates,
            next_of,
            by_await,
            by_generator,
            enters,
            shielded,
            leaf,
        ):
            nursery.start_soon(function, name=function.__name__)
        for number in range(3):
            nursery.start_soon(locked, lock, name=f"locked-{number}")
        nursery.start_soon(channel, receive, name="ä" * 200)
        nursery.start_soon(reads, one, name="reads")
        await trio.testing.wait_all_tasks_blocked()
        time.sleep(0.1)
        say(names)
        print(json.dumps(names[0] + names[1]), flush=True)
        sys.stdin.readline()


trio.run(main)
