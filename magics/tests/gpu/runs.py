"""Runs a training program under `omni-perf run` while it writes a trace, and reads what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from reading import reading

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
TABLES = "temporal_breakdown,idle_time_breakdown,dataloader,python_idle"
PATIENCE_S = 300.0

Document = dict[str, Any]


def measured(document: Document) -> Document:
    """What a report says of GPUs and lines, in seconds: what a comparison reads."""
    report = reading(document)
    idle: Document = document["idle"] or {"idle_ns": 0, "causes": [], "devices": []}

    def causes(rows: list[Document]) -> list[Document]:
        return [cause(row) for row in rows]

    def cause(row: Document) -> Document:
        placed = row["line"] is not None
        file: Document = document["files"][row["file"]] if placed else {"name": "", "lines": None}
        lines: list[str | None] = file["lines"] or []
        text = lines[row["line"] - 1] if placed and row["line"] <= len(lines) else None
        bounds = {"low_s": row["low_ns"], "high_s": row["high_ns"]}
        return {
            "id": row["id"],
            "seconds": row["ns"] / 1e9,
            "hint": row["hint"],
            "file": file["name"],
            "line": row["line"] or 0,
            "source_text": text or "",
            **{name: value / 1e9 for name, value in bounds.items() if value is not None},
        }

    number = [device["number"] for device in document["devices"]]
    return {
        "started_at": document["started_at"],
        "duration_s": report["duration_s"],
        "lines": report["lines"],
        "gpus": [{**row, "index": row["device"]} for row in report["devices"]],
        "idle": {
            "gpu_idle_s": idle["idle_ns"] / 1e9,
            "causes": causes(idle["causes"]),
            "devices": [
                {
                    "device": number[row["device"]],
                    "idle_s": row["idle_ns"] / 1e9,
                    "certainty": row["text"],
                    "causes": causes(row["causes"]),
                }
                for row in idle["devices"]
            ],
        },
        "tracks": [
            {**row, "id": row["id"].replace("gpu.", f"gpu{row['device']}.", 1)} if row["device"] is not None else row
            for row in report["tracks"]
        ],
        "notes": [note["args"] for note in document["notes"] if "what" in note["args"]],
    }


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
    return measured(report), analysis, known


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
