"""What a memory snapshot takes to analyse, with its page, beside what Python takes to load it.

    CPU time    of omni-perf analyze --memory-snapshot, to that of pickle.load of the same file; medians
    memory      the most that each of the two processes had

The file is made here: steps of a training that allocate and free, each with a stack of its own of several frames.
Most of --million events is for real sizes: 5 make a file of some 0.6 GB.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LOAD = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"


def write(path: Path, events: int) -> None:
    """Write a snapshot of so many events."""
    rnd = random.Random(1)
    stacks = [
        [
            {"filename": f"/home/me/model_{depth}.py", "line": n, "name": f"layer_{n}_{depth}"}
            for depth in range(rnd.randint(4, 24))
        ]
        for n in range(500)
    ]
    history: list[dict[str, object]] = []

    def event(action: str, address: int, size: int, stack: int) -> None:
        when = 1_700_000_000_000_000 + 3 * len(history)
        frames = list(stacks[stack])  # as torch writes them: a list for each event
        history.append(
            {"action": action, "addr": address, "size": size, "stream": 0, "time_us": when, "frames": frames}
        )

    while len(history) < events:
        live = [
            ((1 << 40) + n * (1 << 21), rnd.randrange(512, 1 << 21), rnd.randrange(len(stacks))) for n in range(400)
        ]
        for one in live:
            event("alloc", *one)
        for one in reversed(live):
            event("free_requested", *one)
            event("free_completed", *one)
    with path.open("wb") as file:
        pickle.dump({"segments": [], "device_traces": [history]}, file, protocol=4)


def run(command: list[str]) -> tuple[float, float]:
    """Run a command; its CPU seconds, and the most memory it had, in MB."""
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    """Measure by turns and print a line for each of the two."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--million", type=float, default=0.5, help="events")
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        if (writer := os.fork()) == 0:  # what writes it has much memory, which a process started by it would count
            write(path, int(given.million * 1e6))
            os._exit(0)
        os.waitpid(writer, 0)
        ours = [str(ROOT / ".venv/bin/omni-perf"), "analyze", "--memory-snapshot", str(path), "--quiet"]
        commands = {
            "omni-perf": [*ours, "--html", str(Path(folder) / "page.html")],
            "pickle.load": [sys.executable, "-c", LOAD, str(path)],
        }
        cpu: dict[str, list[float]] = {name: [] for name in commands}
        memory: dict[str, float] = dict.fromkeys(commands, 0.0)
        for _ in range(given.rounds):
            for name in random.sample(list(commands), len(commands)):
                seconds, most = run(commands[name])
                cpu[name].append(seconds)
                memory[name] = max(memory[name], most)
        print(f"{given.million:g} million events, {path.stat().st_size / 1e6:.0f} MB")
        for name, seconds in cpu.items():
            ratio = statistics.median(a / b for a, b in zip(seconds, cpu["pickle.load"], strict=True))
            print(f"{name:12} {statistics.median(seconds):6.2f} s of CPU time ({ratio:.2f})  {memory[name]:6.0f} MB")


if __name__ == "__main__":
    main()
