"""Functions that touch known amounts of memory; for each the program reads its own statm before and after.

Arguments: which of them. Reads a line before it starts, then prints {function: bytes}.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable

MB = 1 << 20
statm = os.open("/proc/self/statm", os.O_RDONLY)
kept: list[object] = []
grown: dict[str, int] = {}


def resident() -> int:
    return int(os.pread(statm, 100, 0).split()[1]) * mmap.PAGESIZE


def strings() -> None:
    kept.append([f"{number:09d}" for number in range(700_000)])


def lists() -> None:
    kept.append([[number] for number in range(500_000)])


def dicts() -> None:
    kept.append({number: float(number) for number in range(600_000)})


def arrays() -> None:
    kept.append([bytearray(4 * MB) for _ in range(20)])


def mapped() -> None:
    pages = mmap.mmap(-1, 60 * MB)
    for page in range(0, 60 * MB, mmap.PAGESIZE):
        pages[page] = 1
    kept.append(pages)


def temporaries() -> None:
    for _ in range(30):
        bytes(3 * MB)


def release() -> None:
    kept.clear()


def arenas() -> None:
    half = [object() for _ in range(1_000_000)]
    del half[::2]
    kept.append(half)


def anew() -> None:
    for _ in range(40):
        pages = mmap.mmap(-1, 8 * MB)
        for page in range(0, 8 * MB, mmap.PAGESIZE):
            pages[page] = 1
        pages.close()
    grown["anew"] = 40 * 8 * MB  # each page for the first time


def nothing() -> None:
    time.sleep(0.05)


def touch(megabytes: int, huge: bool) -> None:
    pages = mmap.mmap(-1, megabytes * MB)
    if huge:
        pages.madvise(mmap.MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    for block in range(0, megabytes * MB, MB):
        ctypes.memset(address + block, 1, MB)  # without the GIL
        time.sleep(0.0005)


def small_pages() -> None:
    touch(120, False)


def huge_pages() -> None:
    touch(200, True)


def alone(functions: list[Callable[[], None]]) -> None:
    for function in functions:
        before = resident()
        function()
        grown[function.__name__] = grown.get(function.__name__, 0) + max(resident() - before, 0)


def together() -> None:
    threads = [threading.Thread(target=function) for function in (small_pages, huge_pages)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown.update(small_pages=120 * MB, huge_pages=200 * MB)


print(json.dumps({}), flush=True)
sys.stdin.readline()
time.sleep(0.05)
if sys.argv[1] == "together":
    together()
elif sys.argv[1] == "anew":
    anew()
else:
    alone([strings, nothing, lists, arrays, release, dicts, mapped, temporaries, release, arenas, strings, nothing])
print(json.dumps(grown), flush=True)
sys.stdin.readline()
