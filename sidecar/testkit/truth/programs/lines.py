"""Functions that spend their time in one long instruction whose line differs from its neighbours'.

A reader that is off by one instruction, or by one entry of the line table, names another line.
"""

import dis

import harness

HUGE = 3**40_000
DATA = list(range(30_000))
PAIRS = [(-n, n) for n in range(3_000)]


# fmt: off
def product(a, b):
    return (
        a
        *
        b
    )


def total(data):
    return sum(
        data,
        0,
    )


def order(pairs):
    return sorted(
        pairs,
        reverse=
        True,
    )


def membership(data):
    return (
        -1
        in
        data
    )


def cut(data):
    return data[
        1
        :
        -1
    ]
# fmt: on


PARTS = [(product, HUGE, HUGE), (total, DATA), (order, PAIRS), (membership, DATA), (cut, DATA)]
LONG = {"BINARY_OP", "CALL", "CALL_KW", "CONTAINS_OP", "BINARY_SLICE", "BINARY_SUBSCR"}


def one_round():
    for part, *arguments in PARTS:
        part(*arguments)


def hot_lines():
    """The line of each part's long instruction: its last one of those that do work."""
    return {
        part.__name__: [i.positions.lineno for i in dis.get_instructions(part) if i.opname in LONG][-1]
        for part, *_ in PARTS
    }


harness.drive(one_round, lambda: {"hot_lines": hot_lines()})
