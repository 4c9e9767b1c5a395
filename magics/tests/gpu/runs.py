"""Runs a training program under `omni-perf run` while it writes a trace, and reads what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
TABLES = "temporal_breakdown,idle_time_breakdown,dataloader,python_idle"
PATIENCE_S = 300.0

Document = dict[str, Any]


def recorded(
    program: Path,
    folder: Path,
    script: str,
    *arguments: str,
    python: Path | None = None,
    environment: dict[str, str] | None = None,
) -> tuple[Document, Document, Document]:
    """Return the report, the analysis of the trace and the program's facts; all lie in folder."""
    trace, facts = folder / "torch.pt.trace.json", folder / "facts.json"
    output = ["-s", "0.1", "--format", "json,html,svg", "-o", str(folder / "omni_perf")]
    call(
        [program, "run", *output, "--interpreter", python or sys.executable, PROGRAMS / script],
        *arguments,
        "--facts",
        facts,
        "--trace",
        trace,
        environment=environment,
    )
    call([program, "analyze", trace, "--quiet", "--tables", TABLES, "--json", folder / "analysis.json"])
    trace.unlink()  # its analysis is enough to look at
    report, analysis, known = (
        json.loads((folder / name).read_text()) for name in ("omni_perf.json", "analysis.json", "facts.json")
    )
    return report, analysis, known


def plain(folder: Path, script: str, *arguments: str, command: list[Path | str]) -> Document:
    """Run a program by a command, without a trace; return its facts."""
    facts = folder / "facts.json"
    call([*command, PROGRAMS / script], *arguments, "--facts", facts)
    return json.loads(facts.read_text())


def call(command: list[Path | str], *arguments: Path | str, environment: dict[str, str] | None = None) -> None:
    """Run to the end; an error shows what was said."""
    done = subprocess.run(
        [*command, *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, f"{command} {arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
