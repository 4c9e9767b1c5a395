"""Loops that are found as curio's and trio's are, and are neither; each line read goes one step on."""

import asyncio
import sys
import threading
import types


def step(done):
    print(done, flush=True)
    sys.stdin.readline()


def others():
    curio, trio = types.ModuleType("curio.meta"), types.ModuleType("trio._core._run")
    for module in curio, trio:
        sys.modules[module.__name__] = module
    step("being imported")
    curio._locals = threading.local()
    trio.GLOBAL_RUN_CONTEXT = type("RunContext", (threading.local,), {})()
    step("imported")
    curio._locals.kernel = object()
    trio.GLOBAL_RUN_CONTEXT.runner = type("Runner", (), {"__slots__": ("tasks_elsewhere",)})()
    step("runs")
    curio._locals.kernel = None
    trio.GLOBAL_RUN_CONTEXT.__dict__.clear()
    step("ended")


async def sleeps():
    await asyncio.sleep(60)


async def of_asyncio():
    task = asyncio.create_task(sleeps(), name="sleeps")
    await asyncio.sleep(0)
    await asyncio.to_thread(others)
    task.cancel()


step("nothing")
asyncio.run(of_asyncio())
