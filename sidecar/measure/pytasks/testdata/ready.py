"""Tasks that wait and tasks that are ready, in a loop that is blocked; prints which are which, then blocks."""

import asyncio
import json
import sys
import time


async def waits_for(future):
    await future


async def waits_in_a_call(future):
    await waits_for(future)


async def returns_after(future):
    await future


async def main():
    loop = asyncio.get_running_loop()
    future = {name: loop.create_future() for name in ("pending", "done", "failed", "cancelled", "gathered", "gate")}
    event, queue = asyncio.Event(), asyncio.Queue()
    inner = loop.create_task(returns_after(future["gate"]), name="inner")
    coroutines = {
        "waits": waits_for(future["pending"]),
        "waits-too": waits_in_a_call(future["pending"]),
        "waits-for-a-task": waits_for(loop.create_task(waits_for(future["pending"]), name="waits-inside")),
        "waits-in-a-gather": waits_for(asyncio.gather(future["pending"], future["done"])),
        "sleeps": asyncio.sleep(60),
        "ready-by-the-clock": asyncio.sleep(0.15),
        "ready": waits_for(future["done"]),
        "ready-too": waits_in_a_call(future["done"]),
        "ready-after-an-error": waits_for(future["failed"]),
        "ready-after-a-cancel": waits_for(future["cancelled"]),
        "ready-after-a-gather": waits_for(asyncio.gather(future["gathered"])),
        "ready-after-a-task": waits_for(inner),
        "ready-by-an-event": event.wait(),
        "ready-by-a-queue": queue.get(),
    }
    tasks = [loop.create_task(coroutine, name=name) for name, coroutine in coroutines.items()]
    await asyncio.sleep(0.1)
    future["gathered"].set_result(None)
    future["gate"].set_result(None)
    await asyncio.sleep(0)  # inner returns, and the gather is done: who waits for them has its turn after this task
    future["done"].set_result(None)
    future["cancelled"].cancel()
    future["failed"].set_exception(ValueError())
    event.set()
    queue.put_nowait(1)
    time.sleep(0.1)  # the loop does not look at its timers meanwhile
    names = {task.get_name() for task in tasks} | {"waits-inside"}
    print(json.dumps({name: name.startswith("ready") for name in names}), flush=True)
    sys.stdin.readline()


asyncio.run(main())
