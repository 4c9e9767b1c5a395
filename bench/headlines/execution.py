"""Executes a notebook in a kernel of its own, bare or with every cell profiled."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

ROOT = Path(__file__).resolve().parents[2]
CLOCKS = Path(__file__).with_name("clocks.py")
THRESHOLD_S = 0.3
"""Cells that take longer get a chart, and their headlines are judged."""

ON = f"%load_ext omni_perf\n%omni_perf on -t {THRESHOLD_S}"
KEEP_LAST = (
    "(lambda last: last and open({path!r}, 'wb').write(last.compressed))(__import__('omni_perf').last()) and None"
)
"""Writes the last report to a file, and leaves no name behind."""
PATIENCE_S = 60


@dataclass
class Cell:
    """What became of one code cell."""

    index: int
    """Among the notebook's cells."""
    source: str
    execution_count: int = 0
    outputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Without the chart."""
    charts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The data of the charts, by MIME type."""
    report: dict[str, Any] | None = None
    clocks: dict[str, float] = field(default_factory=dict[str, float])
    cut: bool = False
    """It was interrupted, for it took longer than the limit."""

    @property
    def failed(self) -> bool:
        """Whether it ended with an exception."""
        return any(output["output_type"] == "error" for output in self.outputs)


@dataclass
class Run:
    """One execution of a notebook."""

    cells: list[Cell]
    took_s: float
    """Of all its cells, from request to reply."""
    bytes: int
    """Of the executed notebook as a file."""
    died: bool = False


async def execute(path: Path, python: Path, workspace: Path, profiled: bool, limit_s: float) -> Run:
    """Execute a notebook with what lies beside it, in a fresh copy at the same place each time."""
    shutil.rmtree(workspace, ignore_errors=True)
    copied(path, workspace)
    kept = workspace / "kept"
    kept.mkdir()
    notebook: Any = nbformat.read(path, as_version=4)
    first = nbformat.v4.new_code_cell(ON if profiled else "pass")
    notebook.cells = [first, *(cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip())]
    manager: Any = AsyncKernelManager()
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=argv, display_name="bench", language="python")
    client: Any = NotebookClient(
        notebook, km=manager, timeout=limit_s, interrupt_on_timeout=True, allow_errors=True, startup_timeout=PATIENCE_S
    )
    client.log.disabled = True  # a cell that takes too long is no error here
    run = Run([], 0.0, 0)
    async with client.async_setup_kernel(cwd=str(workspace / "notebook"), env=environment(), cleanup_kc=True):
        await _silently(client, f"exec(compile(open({str(CLOCKS)!r}).read(), {str(CLOCKS)!r}, 'exec'), "
                        f"{{'FILE': {str(kept / 'clocks')!r}, '__name__': 'clocks'}})")  # fmt: skip
        for index, cell in enumerate(notebook.cells):
            began = time.monotonic()
            try:
                await client.async_execute_cell(cell, index)
            except DeadKernelError:
                run.died = True
                break
            took = time.monotonic() - began
            run.took_s += took
            run.cells.append(_cell(index, cell, cut=took >= limit_s))
            if profiled:
                await _silently(client, KEEP_LAST.format(path=str(kept / f"{index}.gz")))
    run.bytes = len(nbformat.writes(notebook).encode())
    _read_kept(run, kept)
    run.cells = run.cells[1:]
    return run


def copied(path: Path, workspace: Path) -> Path:
    """Copy a notebook with what lies beside it; return the copy."""
    shutil.copytree(path.parent, workspace / "notebook", ignore_dangling_symlinks=True)
    return workspace / "notebook" / path.name


def environment() -> dict[str, str]:
    """Return the environment of a kernel, which has this checkout's extension and program; hashes are as they were."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "magics"),
        "PYTHONHASHSEED": "0",
        "OMNI_PERF_BINARY": str(program()),
    }


def program() -> Path:
    """Return this checkout's program, or the one that OMNI_PERF_BINARY names."""
    return Path(os.environ.get("OMNI_PERF_BINARY") or ROOT / ".venv" / "bin" / "omni-perf")


async def _silently(client: Any, code: str) -> None:
    await client.kc.execute(code, silent=True, store_history=False, reply=True, timeout=PATIENCE_S)


def _cell(index: int, cell: Any, cut: bool) -> Cell:
    made = Cell(index, str(cell.source), int(cell.execution_count or 0), cut=cut)
    for output in cell.get("outputs", []):
        if _is_chart(output):
            made.charts.append(dict(output["data"]))
        else:
            made.outputs.append(dict(output))
    return made


def _is_chart(output: Any) -> bool:
    data = output.get("data", {})
    return "application/vnd.omni-perf+json" in data or 'alt="Cell [' in str(data.get("text/html", ""))


def _read_kept(run: Run, kept: Path) -> None:
    """Give each cell its clocks, and its own report: the last one may be an earlier cell's."""
    clocks: dict[int, dict[str, float]] = {}
    if (kept / "clocks").exists():
        for line in (kept / "clocks").read_text().splitlines():
            read = json.loads(line)
            clocks[int(read.pop("execution_count") or 0)] = read
    for cell in run.cells:
        cell.clocks = clocks.get(cell.execution_count, {})
        file = kept / f"{cell.index}.gz"
        if file.exists():
            report = json.loads(gzip.decompress(file.read_bytes()))
            of: dict[str, Any] = report["targets"][0]["cell"] or {}
            cell.report = report if of.get("execution_count") == cell.execution_count else None
