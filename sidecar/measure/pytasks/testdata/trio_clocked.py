"""Tasks of trio that keep a clock of their own: for each function the times between which it waited."""

import json
import sys
import threading
import time

import trio
from waiting import WAITS, waits


async def together(seconds):
    with waits():
        await trio.sleep(seconds)


async def one_by_one():
    for _ in range(10):
        with waits():
            await trio.sleep(0.1)


async def consumer(receive):
    async with receive:
        while True:
            with waits():
                try:
                    await receive.receive()
                except trio.EndOfChannel:
                    return


async def producer(send):
    async with send:
        for item in range(8):
            with waits():
                await trio.sleep(0.1)
            await send.send(item)


async def in_thread():
    with waits():
        await trio.to_thread.run_sync(time.sleep, 0.6)


async def limited(limiter):
    with waits():
        async with limiter:
            await trio.sleep(0.25)


async def items():
    for item in range(4):
        with waits():
            await trio.sleep(0.2)
        yield item


async def iterating():
    async for _ in items():
        pass


async def timed():
    with waits():
        with trio.move_on_after(0.5):
            await trio.sleep(0.9)


async def cancelled(scope):
    with waits(), scope:
        await trio.sleep(60)


async def elsewhere(seconds):
    with waits():
        await trio.sleep(seconds)


async def main():
    other = threading.Thread(target=trio.run, args=(elsewhere, 0.8))
    other.start()
    send, receive = trio.open_memory_channel(8)
    scope, limiter = trio.CancelScope(), trio.CapacityLimiter(2)
    async with trio.open_nursery() as nursery:
        for n in range(12):
            nursery.start_soon(together, 0.4 + n / 20)
        nursery.start_soon(one_by_one)
        for _ in range(3):
            nursery.start_soon(consumer, receive.clone())
        receive.close()
        nursery.start_soon(producer, send)
        nursery.start_soon(in_thread)
        for _ in range(6):
            nursery.start_soon(limited, limiter)
        nursery.start_soon(iterating)
        nursery.start_soon(timed)
        nursery.start_soon(cancelled, scope)
        await trio.sleep(0.7)
        scope.cancel()
    other.join()


print("READY", flush=True)
sys.stdin.readline()
trio.run(main)
print(json.dumps(WAITS), flush=True)
sys.stdin.readline()
