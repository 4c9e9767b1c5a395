"""A loop that is found as curio's is, which is not imported at first; each line read goes one step on."""

import asyncio
import sys
import threading
import types


def step(done):
    print(done, flush=True)
    sys.stdin.readline()


def of_curio():
    meta = types.ModuleType("curio.meta")
    sys.modules[meta.__name__] = meta
    step("being imported")
    meta._locals = threading.local()
    step("imported")
    meta._locals.kernel = object()
    step("runs")
    meta._locals.kernel = None
    step("ended")


async def sleeps():
    await asyncio.sleep(60)


async def of_asyncio():
    task = asyncio.create_task(sleeps(), name="sleeps")
    await asyncio.sleep(0)
    await asyncio.to_thread(of_curio)
    task.cancel()


step("nothing")
asyncio.run(of_asyncio())
