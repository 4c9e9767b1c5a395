"""Cells that nobody wrote: programs of ordinary statements by chance, the same ones for the same seed.

What a cell of each kind does is tried by cells/*.txt; here they meet: loops, functions, methods and generators of
one's own, calls that wait or compute in C or in the standard library, threads that want the GIL meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from truth.cases import Case, Text

Piece = Callable[[random.Random], str]


def waiting(text: str) -> Piece:
    """An expression with {} for the seconds that it waits."""
    return lambda chance: text.format(chance.choice([0.005, 0.01, 0.02, 0.04, 0.08]))


def working(text: str, *sizes: int) -> Piece:
    """An expression with {} for how much it does: some 5 to 50 ms."""
    return lambda chance: text.format(chance.choice(sizes))


LIBRARY = [
    waiting("time.sleep({})"),
    waiting("threading.Event().wait({})"),
    waiting("pool.submit(time.sleep, {}).result()"),
    waiting("list(pool.map(time.sleep, [{0}, {0}]))"),
    waiting("subprocess.run(['sleep', '{}']).returncode"),
    working("sum(range({}))", 400_000, 2_000_000),
    working("sum(i * i for i in range({}))", 50_000, 300_000),
    working("[i * i for i in range({})]", 50_000, 200_000),
    working("sorted(range({}), key=str)", 50_000, 150_000),
    working("max({{i: str(i) for i in range({})}}.values())", 20_000, 80_000),
    working("json.dumps(list(range({})))", 50_000, 200_000),
    working("copy.deepcopy([[1, 2, 3]] * {})", 1_000, 5_000),
    working("statistics.variance(range({}))", 5_000, 20_000),
    working("re.sub(r'(a+)(b*)', r'\\2\\1', 'aab' * {})", 5_000, 40_000),
    working("zlib.compress(bytes(range(256)) * {})", 1_000, 4_000),
    working("hashlib.pbkdf2_hmac('sha256', b'x', b'y', {})", 5_000, 30_000),
]

OWN = [
    working("again({})", 1, 2, 3),
    working("twice({}) + again(1)", 1, 2),
    working("Thing({}).go()", 1, 2),
    working("sum(produce({}))", 3, 10),
]

BESIDE = {
    "busy": "sum(range(10_000))",
    "often": "time.sleep(0.0005)",
    "at times": "stop.wait(0.002)",
    "seldom": "time.sleep(0.02)",
}
"""What threads do beside the cell, again and again."""

COMPANIES = [[], [], ["seldom"], ["busy"], ["often"], ["at times"], ["seldom"] * 3, ["busy", *["seldom"] * 3]]

IMPORTS = """import copy, hashlib, json, re, statistics, subprocess, threading, time, zlib
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
stop = threading.Event()"""

DEFINITIONS = """def again(n):
    {}
    if n > 1:
        again(n - 1)
    {}
    return n
def twice(n):
    for i in range(2):
        {}
    return n
class Thing:
    def __init__(self, n):
        self.n = n
    def go(self):
        {}
        {}
        return self.n
def produce(n):
    for i in range(n):
        x = sum(range(200_000))
        yield i"""


def case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(seed)
    company = chance.choice(COMPANIES)
    beside = [
        f"def beside_{number}():\n    while not stop.is_set():\n        {BESIDE[what]}\n"
        f"threading.Thread(target=beside_{number}, daemon=True).start()"
        for number, what in enumerate(company)
    ]
    texts = [
        ("\n".join([IMPORTS, *beside]), True),
        (DEFINITIONS.format(*(_simple(chance, LIBRARY) for _ in range(DEFINITIONS.count("{}")))), False),
        ("\n".join(["%%omni_perf", *_block(chance, 0)]), False),
        ("stop.set(); pool.shutdown()", True),
    ]
    cells = [Text(f"#{number}", source, by_hand) for number, (source, by_hand) in enumerate(texts, 1)]
    return Case(f"invented {seed}", cells)


def _simple(chance: random.Random, pieces: list[Piece]) -> str:
    return f"v{chance.randrange(9)} = {chance.choice(pieces)(chance)}"


def _block(chance: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(chance.randrange(1, 5)):
        lines += _statement(chance, depth)
    return lines


def _statement(chance: random.Random, depth: int) -> list[str]:
    simple = _simple(chance, LIBRARY + OWN)
    if depth > 1 or chance.random() < 0.65:
        return [simple]
    inner = [f"    {line}" for line in _block(chance, depth + 1)]
    match chance.randrange(6):
        case 0 | 1:
            return [f"for i{depth} in range({chance.randrange(2, 5)}):", *inner]
        case 2:
            return [f"n{depth} = 0", f"while n{depth} < 3:", f"    n{depth} += 1", *inner]
        case 3:
            return ["with threading.Lock():", *inner]
        case 4:
            return [
                *["try:", *inner, f"    {simple}", "    raise ValueError"],
                *["except ValueError:", f"    {_simple(chance, LIBRARY)}"],
            ]
        case _:
            return ["# a comment", "", "if pool is not None:", *inner]
