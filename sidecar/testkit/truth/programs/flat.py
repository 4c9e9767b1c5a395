"""Shallow calls of less than a microsecond, in turn: a stack is out of date before it is read."""

import harness


def tick(n):
    return tick_leaf(n)


def tick_leaf(n):
    return n + 1


def tock(n):
    return tock_leaf(n)


def tock_leaf(n):
    return n - 1


def one_round():
    n = 0
    for _ in range(2_000):
        n = tick(n)
        n = tock(n)


harness.drive(one_round)
