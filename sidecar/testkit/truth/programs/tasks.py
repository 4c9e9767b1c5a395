"""asyncio tasks, three coroutines deep, each computing `OMNI_PERF_ITEM_US` (100) µs between awaits.

Each task does so `OMNI_PERF_STEPS` (50) times, then a new event loop begins. With few steps the making of
event loops, of which no part takes long, is much of the time.
"""

import asyncio
import os

import harness

TURNS = harness.turns(int(os.environ.get("OMNI_PERF_ITEM_US", "100")))
STEPS = int(os.environ.get("OMNI_PERF_STEPS", "50"))


async def reader():
    for _ in range(STEPS):
        await reader_step()


async def reader_step():
    reader_work()
    await asyncio.sleep(0)


def reader_work():
    for _ in range(TURNS):
        pass


async def writer():
    for _ in range(STEPS):
        await writer_step()


async def writer_step():
    writer_work()
    await asyncio.sleep(0)


def writer_work():
    for _ in range(TURNS):
        pass


async def serve():
    await asyncio.gather(reader(), writer(), reader(), writer())


def one_round():
    asyncio.run(serve())


harness.drive(one_round)
