"""Tasks that keep a clock of their own: for each function the times between which it waited."""

import asyncio
import json
import sys
import threading
import time

from waiting import WAITS, waits


async def gathered(seconds):
    with waits():
        await asyncio.sleep(seconds)


async def grouped(seconds):
    with waits():
        await asyncio.sleep(seconds)


async def one_by_one():
    for _ in range(10):
        with waits():
            await asyncio.sleep(0.1)


async def consumer(queue):
    while True:
        with waits():
            item = await queue.get()
        if item is None:
            return


async def producer(queue):
    for item in range(8):
        with waits():
            await asyncio.sleep(0.1)
        await queue.put(item)
    for _ in range(3):
        await queue.put(None)


async def in_thread():
    with waits():
        await asyncio.to_thread(time.sleep, 0.6)


async def limited(semaphore):
    with waits():
        async with semaphore:
            await asyncio.sleep(0.25)


async def items():
    for item in range(4):
        with waits():
            await asyncio.sleep(0.2)
        yield item


async def iterating():
    async for _ in items():
        pass


async def shielded():
    with waits():
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(0.9)), 0.5)
        except asyncio.TimeoutError:
            pass


async def cancelled():
    with waits():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


async def elsewhere(seconds):
    with waits():
        await asyncio.sleep(seconds)


async def main():
    other = threading.Thread(target=lambda: asyncio.run(elsewhere(0.8)))
    other.start()
    queue = asyncio.Queue()
    victim = asyncio.create_task(cancelled())
    asyncio.get_running_loop().call_later(0.7, victim.cancel)
    semaphore = asyncio.Semaphore(2)
    await asyncio.gather(
        *(gathered(0.4 + n / 20) for n in range(12)), one_by_one(), *(consumer(queue) for _ in range(3)), producer(queue),
        in_thread(), *(limited(semaphore) for _ in range(6)), iterating(), shielded(), victim)
    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(grouped(0.3 + n / 10))
    other.join()


print("READY", flush=True)
sys.stdin.readline()
asyncio.run(main())
print(json.dumps(WAITS), flush=True)
sys.stdin.readline()
