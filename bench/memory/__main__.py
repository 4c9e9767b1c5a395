"""Growth of resident memory by line, and the peak, of programs that read their own: make memory.

Each program runs under ``omni-perf run``. Of all that its lines grew by, at most 4 % may be lacking where it was, or
be said where it was not, and the peak is the kernel's own: equal to ru_maxrss. The exit code is 1 where that is
not so.

Then Scalene and memray run the same programs by turns with ours, and Scalene's own programs (peers.py): what each says,
and how much longer a program takes. ``--alone`` leaves them out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs.py"
TORCH = ROOT / ".cache/torch/bin/python"
MISPLACED = 0.04
ATTEMPTS = 3
"""A line may begin between two readings, of which a busy machine has fewer."""


def names() -> list[str]:
    """Return the functions that are programs."""
    return re.findall(r"^def (\w+)\(\) -> None:", PROGRAMS.read_text(), re.MULTILINE)


def run(python: Path | str, name: str) -> tuple[dict[str, tuple[float, float]], float, int, int]:
    """Return by line what a program and its report say in MB, the share that is misplaced, and both peaks in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "site-packages")
        shutil.copytree(HERE / "library", library)
        report, figures = Path(folder, "report.json"), Path(folder, "figures.json")
        subprocess.run(
            [ROOT / ".venv/bin/omni-perf", "run", "--interpreter", python, "-o", report, PROGRAMS, name, figures],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(library)},
            check=True,
            capture_output=True,
        )
        document, own = json.loads(report.read_text()), json.loads(figures.read_text())
    ends = dict(enumerate((line.rpartition("# ")[2] for line in PROGRAMS.read_text().splitlines()), 1))
    said: dict[str, float] = {}
    for row in document.get("memory", []):
        if document["files"][row["file"]]["name"].endswith("programs.py") and row["process"] == 0:
            said[ends[row["line"]]] = said.get(ends[row["line"]], 0.0) + row["grown_bytes"] / 1e6
    lines = {what: (grown / 1e6, said.get(what, 0.0)) for what, grown in own["lines"].items()}
    lacking = sum(max(grown - ours, 0) for grown, ours in lines.values())
    excess = sum(max(ours - grown, 0) for grown, ours in lines.values())
    misplaced = max(lacking, excess) / sum(grown for grown, _ in lines.values())
    return lines, misplaced, own["peak"], document["processes"][0]["peak_memory_bytes"]


def main() -> int:
    alone = "--alone" in sys.argv
    chosen, bad, peaks = [name for name in sys.argv[1:] if name != "--alone"] or names(), 0, 0
    for name in chosen:
        python = TORCH if name == "arrays" else sys.executable
        if not Path(python).exists():
            print(f"{name:9} skipped: there is no numpy in .cache/torch (tools/torch)")
            continue
        attempts = [run(python, name)]
        while attempts[-1][1] > MISPLACED and len(attempts) < ATTEMPTS:
            attempts.append(run(python, name))
        lines, misplaced, peak, ours = attempts[-1]
        peaks += all(theirs == said for _, _, theirs, said in attempts)
        bad += misplaced > MISPLACED
        text = ", ".join(f"{what} {said:.1f} (own {grown:.1f})" for what, (grown, said) in lines.items())
        print(f"{name:9} {misplaced:6.1%} misplaced  peak {ours - peak:+d} B  {text} MB", flush=True)
    print(f"peak equal in {peaks} of {len(chosen)} programs; {bad} with too much misplaced")
    if not alone:
        print("\nMisplaced growth and time beside peers:\n\n" + peers.beside(chosen))
        print("\nScalene's own programs, MB by line:\n\n" + peers.on_their_programs())
    return bad > 0 or peaks < len(chosen)


if __name__ == "__main__":
    sys.exit(main())
