"""Four threads that all compute: the GIL changes hands about 200 times a second."""

import threading

import harness

LEAF = f"total = 0\nfor i in range({harness.turns(100)}):\n    total += i\nreturn total"
MAIN, *OTHERS = [harness.chain(name, 7, LEAF) for name in ("north", "east", "south", "west")]
OVER = threading.Event()


def compute(arm):
    while not OVER.is_set():
        arm(1)


def one_round():
    MAIN(1)


def start():
    for arm in OTHERS:
        threading.Thread(target=compute, args=(arm,), daemon=True).start()


harness.drive(one_round, before=start)
OVER.set()
