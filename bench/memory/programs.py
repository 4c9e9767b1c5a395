"""Programs whose memory grows, by lines they know: ``programs.py NAME FIGURES`` runs one and writes its figures.

A line that grows ends in a comment with its name, and is as slow as programs are that make what they keep.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import pickle
import sys
import tempfile
import threading
import time
from typing import Any

from grown import grown, known, net, say

MB = 1 << 20


def blocks() -> None:
    """Two lines in turn."""
    kept: list[Any] = []
    for _ in range(8):
        with grown("first"):
            kept.append(b"x" * (12 * MB))  # first
        with grown("second"):
            kept.append([b"y" * MB for _ in range(5)])  # second


def objects() -> None:
    """Small objects: numbers, texts, a table of them."""
    with grown("numbers"):
        numbers = list(range(10**6, 4 * 10**6))  # numbers
    with grown("texts"):
        texts = [str(number) for number in numbers[:1_500_000]]  # texts
    with grown("table"):
        table = dict(zip(texts, numbers, strict=False))  # table
    del table


def arrays() -> None:
    """Arrays of numpy: made, filled, and one made of them."""
    import numpy

    with net("ones"):
        ones = numpy.ones(12_000_000)  # ones
    with net("empty"):
        empty = numpy.empty(12_000_000)  # empty
    with net("filled"):
        empty[:] = 2  # filled
    with net("sum"):
        total = ones + empty  # sum
    del total


def mapped() -> None:
    """Memory that is mapped, and touched later."""
    size = 120 * MB
    with grown("map"):
        place = mmap.mmap(-1, size)  # map
    with net("touch"):
        place[:] = bytes(size)  # touch


def file() -> None:
    """A file that is mapped and read: its pages are resident."""
    with tempfile.TemporaryFile() as data:
        data.write(b"x" * (100 * MB))
        data.flush()
        place = mmap.mmap(data.fileno(), 0, prot=mmap.PROT_READ)
        time.sleep(0.05)  # what was written from is given back
        with net("read"):
            hashlib.sha256(place)  # read


def growing() -> None:
    """A block that is made longer again and again."""
    block = bytearray()
    for _ in range(60):
        with grown("extend"):
            block.extend(b"z" * (2 * MB))  # extend


def released() -> None:
    """What one line makes another gives back, and a third makes anew."""
    for _ in range(5):
        with grown("make"):
            block = b"x" * (40 * MB)  # make
        del block
        with grown("again"):
            block = b"y" * (25 * MB)  # again
        del block


def arenas() -> None:
    """Small objects of which every tenth is kept: the arenas stay, and are used again."""
    with grown("many"):
        many = [str(number) for number in range(1_500_000)]  # many
    few = many[::10]
    del many
    with grown("anew"):
        anew = [str(number) for number in range(1_000_000)]  # anew
    del few, anew


def together() -> None:
    """Two threads at once, each of which knows what it touches."""

    def one() -> None:
        kept: list[bytes] = []
        for _ in range(40):
            kept.append(b"x" * (4 * MB))  # one
        known("one", len(kept) * 4 * MB)

    def other() -> None:
        kept: list[bytes] = []
        for _ in range(40):
            kept.append(b"y" * (2 * MB))  # other
        known("other", len(kept) * 2 * MB)

    threads = [threading.Thread(target=work) for work in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forked() -> None:
    """A child writes what its parent made: the parent grows by its own lines alone."""
    with grown("made"):
        block = bytearray(b"x" * (80 * MB))  # made
    if not (child := os.fork()):
        block[:] = bytes(len(block))
        os._exit(0)
    os.waitpid(child, 0)
    with grown("more"):
        more = b"y" * (60 * MB)  # more
    del more


def huge() -> None:
    """Huge pages: growth in steps of 2 MB."""
    place = mmap.mmap(-1, 160 * MB)
    place.madvise(mmap.MADV_HUGEPAGE)
    with net("half"):
        place[: 80 * MB] = bytes(80 * MB)  # half
    with net("rest"):
        place[80 * MB :] = bytes(80 * MB)  # rest


def parsed() -> None:
    """Texts that become objects."""
    rows = [{"id": number, "name": f"row {number}", "values": [number] * 5} for number in range(150_000)]
    with grown("dump"):
        text = json.dumps(rows)  # dump
    with grown("load"):
        again = json.loads(text)  # load
    with grown("pickle"):
        packed = pickle.dumps(again)  # pickle
    del packed


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    say(sys.argv[2])
