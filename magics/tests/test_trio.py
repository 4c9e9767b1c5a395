"""The headlines of programs of trio, and of anyio on it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import requirement

pytestmark = pytest.mark.timed

MANY = """
import trio
async def fetch(n):
    await trio.sleep(0.5 + 0.05 * n)
async def main():
    async with trio.open_nursery() as nursery:
        for n in range(18):
            nursery.start_soon(fetch, n)
trio.run(main)
"""
IN_TURN = """
import trio
async def fetch():
    await trio.sleep(0.1)
async def main():
    for n in range(15):
        await fetch()
trio.run(main)
"""
BLOCKED = """
import time, trio
def checksum():
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end: pass
async def client():
    for _ in range(5):
        await trio.sleep(0.01)
async def busy():
    for _ in range(12):
        checksum()
        await trio.sleep(0)
async def main():
    async with trio.open_nursery() as nursery:
        for n in range(19):
            nursery.start_soon(client)
        nursery.start_soon(busy)
trio.run(main)
"""
LOCK = """
import trio
lock = trio.Lock()
async def fetch():
    async with lock:
        await trio.sleep(0.1)
async def main():
    async with trio.open_nursery() as nursery:
        for n in range(18):
            nursery.start_soon(fetch)
trio.run(main)
"""


@pytest.mark.parametrize(
    ("program", "headline"),
    [
        (
            MANY,
            r"up to 18 tasks waited at once, 1[2-6]\.\d on average, in fetch, app\.py:4 \(trio\.sleep\), for 1\.[2-5] of",
        ),
        (
            IN_TURN,
            r"one after the other: 15 awaits of (0\.10 s|9\d ms) in app\.py:4 \(trio\.sleep\) never overlapped, 1\.[56] of",
        ),
        (BLOCKED, r"the event loop was blocked for .* by checksum\(\) in app\.py:11; up to (19|20) tasks were ready"),
        (
            LOCK,
            r"up to 17 tasks waited at once, .* app\.py:5 \(trio\.Lock\.acquire\), .*; the one that had it waited in app\.py:6",
        ),
    ],
    ids=["many", "in-turn", "blocked", "lock"],
)
def test_headline(tmp_path: Path, program: str, headline: str) -> None:
    python = requirement.python_with_trio()
    (tmp_path / "app.py").write_text(program)
    for last in (False, False, True):  # on a busy machine tasks wake late
        command = [requirement.program(), "run", "--interpreter", python, "-o", "report.json", "app.py"]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        text = json.loads((tmp_path / "report.json").read_text())["headline"]["text"]
        if re.match(headline, text, re.IGNORECASE):
            return
        assert not last, text
