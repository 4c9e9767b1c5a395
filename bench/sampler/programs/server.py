"""An asyncio echo server and four clients in one event loop, over a pair of sockets each."""

import asyncio
import json
import socket

import harness

REQUEST = json.dumps({"method": "echo", "values": list(range(50))}).encode() + b"\n"
LOOP = asyncio.new_event_loop()


async def serve(reader, writer):
    while line := await reader.readline():
        await answer(json.loads(line), writer)


async def answer(request, writer):
    writer.write(json.dumps({"result": sum(request["values"])}).encode() + b"\n")
    await writer.drain()


async def ask(reader, writer, times):
    for _ in range(times):
        writer.write(REQUEST)
        await writer.drain()
        await reader.readline()


async def connect():
    ours, theirs = socket.socketpair()
    client = await asyncio.open_connection(sock=ours)
    server = await asyncio.open_connection(sock=theirs)
    return client, asyncio.ensure_future(serve(*server))


async def ask_all(connections):
    await asyncio.gather(*(ask(*client, 10) for client, _ in connections))


CONNECTIONS = [LOOP.run_until_complete(connect()) for _ in range(4)]


def one_round():
    LOOP.run_until_complete(ask_all(CONNECTIONS))


harness.drive(one_round)
