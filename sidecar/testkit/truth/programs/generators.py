"""Pipelines of generators, made anew for every few items.

`OMNI_PERF_ITEM_US` is the work per item in µs: 0 for generators that change faster than any reader.
"""

import os

import harness

ITEM = int(os.environ.get("OMNI_PERF_ITEM_US", "0"))
TURNS = harness.turns(ITEM) if ITEM else 1
ITEMS = 10


def cat_source(n):
    for item in range(n):
        cat_work()
        yield item


def cat_work():
    for _ in range(TURNS):
        pass


def cat_map(items):
    for item in items:
        yield item + 1


def cat_relay(items):
    yield from cat_map(items)


def dog_source(n):
    for item in range(n):
        dog_work()
        yield item


def dog_work():
    for _ in range(TURNS):
        pass


def dog_map(items):
    for item in items:
        yield item * 2


def dog_relay(items):
    yield from dog_map(items)


def echo():
    received = None
    while True:
        received = yield received


def cats():
    return sum(cat_relay(cat_source(ITEMS)))


def dogs():
    return sum(dog_relay(dog_source(ITEMS)))


def send():
    generator = echo()
    next(generator)
    for item in range(ITEMS):
        generator.send(item)


def one_round():
    for _ in range(20):
        cats()
        dogs()
        if not ITEM:
            send()


harness.drive(one_round)
