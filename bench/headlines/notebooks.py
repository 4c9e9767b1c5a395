"""Executes real notebooks with and without the profiler; compares outputs, and charts with the cells' own clocks.

    make notebooks NOTEBOOKS=FOLDER        every notebook below the folder

Each notebook is executed bare twice and once with every cell profiled, in kernels of their own. Written into
--out (build/notebooks), for each notebook and for all of them:

    headlines.csv, headlines.md    a row for each cell that took 0.3 s or more: its code, title, headline and hint,
                                   its own clocks, and each contradiction
    differences.md                 cells whose outputs differ with the profiler and not without
    totals.md                      cells, headlines, contradictions, differences, bytes, time

The exit code is 1 where outputs differ or a page contradicts itself. A row's judgement is a person's:
docs/notebooks.md has the words for it.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import contradictions
import execution
import sameness
from execution import Cell, Run

COLUMNS = ("wall_s", "main_cpu_s", "main_off_s", "process_cpu_s", "children_cpu_s", "modules")


@dataclass
class Headline:
    """A row of the table."""

    notebook: str
    cell: int
    code: str
    title: str
    headline: str
    hint: str
    finding: str
    clocks: str
    contradictions: str
    judgement: str = ""


@dataclass
class Totals:
    """A row of the totals."""

    notebook: str
    cells: int = 0
    headlines: int = 0
    contradictions: int = 0
    compared: int = 0
    different: int = 0
    bare_kb: int = 0
    profiled_kb: int = 0
    bare_s: float = 0.0
    again_s: float = 0.0
    profiled_s: float = 0.0


@dataclass
class Result:
    """What came of one notebook."""

    totals: Totals
    headlines: list[Headline]
    differences: list[str]


def main() -> None:
    """Run the bench on the notebooks below the given folders."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("notebooks", type=Path, nargs="+", help="notebooks, or folders with notebooks")
    arguments.add_argument("--python", type=Path, default=default_python(), help="the interpreter of the kernels")
    arguments.add_argument("--out", type=Path, default=execution.ROOT / "build" / "notebooks")
    arguments.add_argument("--limit", type=float, default=60, help="seconds after which a cell is interrupted")
    arguments.add_argument("--headlines", action="store_true", help="only the profiled run: outputs are not compared")
    arguments.add_argument("--skip", action="store_true", help="leave out notebooks that have a result in --out")
    given = arguments.parse_args()
    results: list[Result] = []
    for path in found(given.notebooks):
        kept = given.out / path.stem / "result.json"
        if given.skip and kept.exists():
            results.append(read(kept))
            continue
        place = Place(path, given.python, given.out / path.stem, given.limit)
        result = asyncio.run(headlines_of(place) if given.headlines else whole(place))
        results.append(result)
        kept.write_text(json.dumps(asdict(result), indent=1))
        print(line(result.totals), flush=True)
        write(results, given.out)
    write(results, given.out)
    print((given.out / "totals.md").read_text())
    sys.exit(any(result.differences or result.totals.contradictions for result in results))


def default_python() -> Path:
    """Return the interpreter of tools/notebooks' environment, where there is one, else this one."""
    made = execution.ROOT / ".cache" / "notebooks" / "bin" / "python"
    return made if made.exists() else Path(sys.executable)


def found(paths: list[Path]) -> list[Path]:
    """Return the notebooks in the given places."""
    listed: list[Path] = []
    for path in paths:
        listed += sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
    return [path for path in listed if ".ipynb_checkpoints" not in path.parts]


@dataclass
class Place:
    """A notebook, what it is executed by, and where its results go."""

    path: Path
    python: Path
    out: Path
    limit_s: float

    async def execute(self, profiled: bool) -> Run:
        """Execute the notebook once; keep the reports and charts."""
        self.out.mkdir(parents=True, exist_ok=True)
        workspace = Path(tempfile.gettempdir()) / f"omni_perf-notebooks-{os.getpid()}"
        run = await execution.execute(self.path, self.python, workspace, profiled, self.limit_s)
        shutil.rmtree(workspace, ignore_errors=True)
        for cell in run.cells:
            if cell.report is not None and cell.charts:
                (self.out / f"{cell.index}.json").write_text(json.dumps(cell.report))
                (self.out / f"{cell.index}.txt").write_text(cell.charts[-1].get("text/plain", ""))
        return run


async def whole(place: Place) -> Result:
    """Execute a notebook three times and compare what came of it."""
    bare = await place.execute(profiled=False)
    profiled = await place.execute(profiled=True)
    again = await place.execute(profiled=False)
    return judge(place.path.stem, bare, again, profiled)


async def headlines_of(place: Place) -> Result:
    """Execute a notebook once, profiled."""
    nothing = Run([], 0.0, 0)
    return judge(place.path.stem, nothing, nothing, await place.execute(profiled=True))


def judge(name: str, bare: Run, again: Run, profiled: Run) -> Result:
    """Compare three runs of a notebook."""
    headlines = [row for cell in profiled.cells if (row := headline(name, cell)) is not None]
    differences: list[str] = []
    compared = 0
    for cells in zip(bare.cells, again.cells, profiled.cells, strict=False):
        if any(cell.cut for cell in cells):  # how far it came is chance, and later cells see that
            break
        level, differs = sameness.difference(*(cell.outputs for cell in cells))
        compared += level != ""
        if differs:
            differences.append(_difference(name, level, cells[0], cells[2]))
    totals = Totals(
        name,
        len(profiled.cells),
        len(headlines),
        sum(len(row.contradictions.splitlines()) for row in headlines),
        compared,
        len(differences),
        bare.bytes // 1000,
        profiled.bytes // 1000,
        round(bare.took_s, 1),
        round(again.took_s, 1),
        round(profiled.took_s, 1),
    )
    return Result(totals, headlines, differences)


def _difference(name: str, level: str, bare: Cell, profiled: Cell) -> str:
    shown = "\n".join(f"    {sameness.LEVELS[level](cell.outputs)[:1500]}" for cell in (bare, profiled))
    return f"## {name}, cell {bare.index} ({level})\n\n{_quoted(bare.source)}\n\nBare, then profiled:\n\n{shown}\n"


def headline(name: str, cell: Cell) -> Headline | None:
    """Make the row of a cell; None where it has no chart."""
    if not cell.charts or cell.report is None:
        return None
    clocks = {} if cell.cut else cell.clocks  # an interrupted cell may have gone on
    page = contradictions.Page(cell.charts[-1].get("text/plain", ""), cell.report, clocks, cell.failed)
    about = page.finding()
    return Headline(
        name,
        cell.index,
        cell.source,
        page.title,
        page.headline,
        str(cell.report["headline"].get("hint", "")),
        str(about["id"]) if about else "",
        " ".join(f"{clock.removesuffix('_s')}={cell.clocks[clock]:.2f}" for clock in COLUMNS if clock in cell.clocks),
        "\n".join(contradictions.contradictions(page) if page.duration_s >= execution.THRESHOLD_S else []),
    )


# Written out


def read(path: Path) -> Result:
    """Read a result that was kept."""
    kept = json.loads(path.read_text())
    return Result(Totals(**kept["totals"]), [Headline(**row) for row in kept["headlines"]], kept["differences"])


def write(results: list[Result], out: Path) -> None:
    """Write the tables of all notebooks."""
    rows = [row for result in results for row in result.headlines]
    with (out / "headlines.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([column.name for column in fields(Headline)])
        table.writerows([list(asdict(row).values()) for row in rows])
    (out / "headlines.md").write_text("\n".join(map(_row, rows)))
    (out / "differences.md").write_text("\n".join(part for result in results for part in result.differences))
    names = [column.name for column in fields(Totals)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(map(str, asdict(result.totals).values())) + " |" for result in results]
    sums = [round(sum(getattr(result.totals, name) for result in results), 1) for name in names[1:]]
    lines.append("| all | " + " | ".join(map(str, sums)) + " |")
    (out / "totals.md").write_text("\n".join(lines) + "\n")


def _row(row: Headline) -> str:
    contradictory = "".join(f"\n- CONTRADICTION {line}" for line in row.contradictions.splitlines())
    hint = f"\n\nHint: {row.hint}" if row.hint else ""
    return (
        f"## {row.notebook} {row.cell}\n\n{_quoted(row.code)}\n\n**{row.title}**\n\n{row.headline}{hint}\n\n"
        f"{row.finding}; own clocks: {row.clocks}{contradictory}\n"
    )


def _quoted(code: str, most: int = 40) -> str:
    lines = code.splitlines()
    return "\n".join(f"    {line[:140]}" for line in lines[:most]) + ("\n    …" if len(lines) > most else "")


def line(totals: Totals) -> str:
    """Return one notebook's totals, short."""
    return (
        f"{totals.notebook}: {totals.cells} cells, {totals.headlines} headlines, "
        f"{totals.contradictions} contradictions, {totals.different} of {totals.compared} outputs differ, "
        f"{totals.bare_s} s bare, {totals.profiled_s} s profiled"
    )


if __name__ == "__main__":
    main()
