"""Chains 30 calls deep with a leaf of about 1 µs: most of the time the stack is growing or shrinking.

Every level has a name of its own, unlike a recursion's, so that every torn stack shows.
"""

import harness

LEAF = "for i in range(20):\n    n += i\nreturn n"
ARMS = [harness.chain(name, 30, LEAF) for name in ("red", "blue")]


def one_round():
    for _ in range(50):
        for arm in ARMS:
            arm(1)


harness.drive(one_round)
