"""Tasks of trio that wait and tasks that are ready, in a loop that is blocked; prints which are which, then blocks."""

import json
import sys
import time

import trio


async def waits(event):
    await event.wait()


async def limited():
    with trio.move_on_after(0.15):
        await trio.sleep_forever()


async def limited_further_out():
    with trio.move_on_after(60):
        await trio.Event().wait()


async def begins():
    await trio.sleep(60)


async def main():
    event, pending, scope = trio.Event(), trio.Event(), trio.CancelScope()

    async def cancelled():
        with scope:
            await pending.wait()

    tasks = {
        "waits": (waits, pending),
        "waits-for-long": (limited_further_out,),
        "sleeps": (trio.sleep, 60),
        "sleeps-for-ever": (trio.sleep_forever,),
        "ready": (waits, event),
        "ready-by-the-clock": (trio.sleep, 0.15),
        "ready-by-a-limit": (limited,),
        "ready-after-a-cancel": (cancelled,),
    }
    async with trio.open_nursery() as nursery:
        for name, (function, *args) in tasks.items():
            nursery.start_soon(function, *args, name=name)
        await trio.sleep(0.1)
        event.set()
        scope.cancel()
        nursery.start_soon(begins, name="ready-not-begun")
        time.sleep(0.1)  # the loop does not look at its deadlines meanwhile
        names = [*tasks, "ready-not-begun"]
        print(json.dumps({name: name.startswith("ready") for name in names}), flush=True)
        sys.stdin.readline()


trio.run(main)
