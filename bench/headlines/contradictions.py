"""What a cell's page says against what else it says, and against the cell's own clocks.

Each check is a function that returns a sentence per contradiction. Shares are of the cell's
duration and agree within POINTS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

POINTS = 0.05
SHORTEST_S = 0.02
"""Two durations that differ by less are the same."""

NUMBER = r"(<?\d[\d,]*(?:\.\d+)?)"
UNITS_S = {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0}


@dataclass
class Page:
    """A cell's chart as text, its report, and what the cell's own clocks say."""

    text: str
    """The chart as text/plain: the title is its first line, the headline follows up to an empty line."""
    report: dict[str, Any]
    clocks: dict[str, float]
    """Empty where the cell's end was not awaited."""
    failed: bool = False
    """The cell ended with an exception."""
    names: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.names = dict(self.report["enumerations"])

    @property
    def title(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]

    @property
    def headline(self) -> str:
        """The sentences below the title, in one line."""
        return " ".join(self.text.split("\n\n")[0].split("\n")[1:])

    @cached_property
    def duration_s(self) -> float:
        """What all shares are of."""
        return self.report["duration_ns"] / 1e9

    @cached_property
    def partial(self) -> bool:
        """Whether the clocks have more than the page: a traceback's formatting, a beginning that was not recorded."""
        return self.failed or any(note["id"] == "begun-late" for note in self.report["notes"])

    @cached_property
    def unknown(self) -> float:
        """The share of which the sampler knows nothing."""
        return share_in(self.title, "unknown")

    @cached_property
    def cores(self) -> float:
        """How many CPUs the machine has."""
        return float(self.report["hosts"][0]["cores"])

    @cached_property
    def main(self) -> dict[str, Any]:
        """The thread that ran the cell."""
        return next(thread for thread in self.report["threads"] if thread["runs_cell"])

    @property
    def reading_s(self) -> float:
        """For how long the cell's own clocks were read, which is in the page and not between the readings."""
        return self.clocks.get("reading_s", 0.0)

    def own_s(self, clock: str) -> float:
        """Return one of the cell's own clocks."""
        return self.clocks[clock]

    def lines(self, process: int | None = None) -> Iterator[dict[str, Any]]:
        """Return the rows of the table of lines, of one process or of all."""
        return (row for row in self.report["lines"] if process in (None, row["process"]))

    def finding(self) -> dict[str, Any] | None:
        """Return what the headline is about."""
        index = self.report["headline"].get("finding")
        return None if index is None else self.report["findings"][index]


def share_in(title: str, state: str) -> float:
    """Return the share that a title gives a state.

    >>> share_in("Cell [3]  0.77 s  computing 26 %  no free CPU <0.1 %", "computing")
    0.26
    """
    found = re.search(rf"(?:^|  ){state} <?([\d.]+) %", title)
    return float(found[1]) / 100 if found else 0.0


def half_a_digit(text: str) -> float:
    """Return by how much a figure differs from what it is a rounding of, at most.

    >>> half_a_digit("1.0")
    0.05
    """
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def number(text: str) -> float:
    """Return a figure of a sentence."""
    return float(text.lstrip("<").replace(",", ""))


def title_has_the_wall_time(page: Page) -> Iterator[str]:
    """The cell took what its title says."""
    found = re.search(rf"  {NUMBER} (s|ms|min|h)\b", page.title)
    if not found:
        return
    said, wall = number(found[1]) * UNITS_S[found[2]], page.own_s("wall_s")
    allowed = max(POINTS * wall, SHORTEST_S) + half_a_digit(found[1]) * UNITS_S[found[2]]
    if not page.partial and not wall - allowed <= said <= wall + allowed + page.reading_s:
        yield f"the title says {said:g} s, the cell took {wall:.2f} s"


def shares_add_up(page: Page) -> Iterator[str]:
    """The shares of a title are of one whole."""
    shares = [number(part) for part in re.findall(rf"{NUMBER} %", page.title)]
    if sum(shares) > 102:
        yield f"the title's shares add up to {sum(shares):g} %"


def title_has_the_cpu_time(page: Page) -> Iterator[str]:
    """Computing and wanting a CPU are what the scheduler counted for the thread."""
    for state, clock in (("computing", "main_cpu_s"), ("no free CPU", "main_off_s")):
        said, own = share_in(page.title, state), page.own_s(clock) / page.duration_s
        if said > own + POINTS + page.reading_s / page.duration_s or (
            not page.partial and said + page.unknown < own - POINTS
        ):
            yield f"the title says {state} {said:.0%}, the thread's own clock {own:.0%}"


def title_has_no_other_wait(page: Page) -> Iterator[str]:
    """A thread does not wait for something else while it computes or wants a CPU."""
    said = share_in(page.title, "waiting")
    rest = page.own_s("wall_s") + page.reading_s - page.own_s("main_cpu_s") - page.own_s("main_off_s")
    if not page.partial and said > rest / page.duration_s + POINTS:
        yield f"the title says waiting {said:.0%}, the thread had and wanted a CPU but for {rest / page.duration_s:.0%}"


def title_agrees_with_lane(page: Page) -> Iterator[str]:
    """A thread that computes is in the lane of the process's CPU."""
    for track in page.report["tracks"]:
        if track["id"] == "cpu" and track["mean"] is not None:
            said = share_in(page.title, "computing")
            if said > track["mean"] + POINTS:
                yield f"the title says computing {said:.0%}, the lane {track['mean']:.2f} cores"


def lanes_have_the_cpu_time(page: Page) -> Iterator[str]:
    """The lanes of the CPU have what was used: one is of the program, its children's is of these alone."""
    children = page.own_s("children_cpu_s")
    used = {"cpu": page.own_s("process_cpu_s") + children, "cpu.children": children}
    for track in page.report["tracks"]:
        if track["id"] not in used or track["mean"] is None:
            continue
        said, own = track["mean"], used[track["id"]] / page.duration_s
        allowed = POINTS + POINTS * own + 2 * SHORTEST_S / page.duration_s  # a clock of processes ticks each 10 ms
        if said > own + allowed or (not page.partial and said < own - allowed):
            yield f"the lane {track['id']} has {said:.2f} cores, the cell's own clock {own:.2f}"


def lanes_are_below_the_machine(page: Page) -> Iterator[str]:
    """No lane has more cores than the machine."""
    for track in page.report["tracks"]:
        if track["unit"] == "cores" and (track["peak"] or 0) > page.cores * 1.001:
            yield f"the lane {track['id']} has {track['peak']:.2f} cores of {page.cores:g}"


def no_figure_above_the_machine(page: Page) -> Iterator[str]:
    """No sentence has more cores or more than all of something."""
    for used, of in re.findall(rf"{NUMBER} of {NUMBER} cores", page.text):
        if number(used) > number(of) or number(of) > page.cores:
            yield f"{used} of {of} cores, of {page.cores:g}"
    for percent in re.findall(rf"{NUMBER} %", page.headline):
        if number(percent) > 100:
            yield f"{percent} % in the headline"


def parts_are_of_the_duration(page: Page) -> Iterator[str]:
    """What the headline gives as a part of the cell is one."""
    for part, whole, unit in re.findall(rf"{NUMBER} of {NUMBER} (s|ms|min)\b", page.headline):
        if number(part) > number(whole):
            yield f"{part} of {whole} {unit}"
        if abs(number(whole) * UNITS_S[unit] - page.duration_s) > POINTS * page.duration_s:
            yield f"{part} of {whole} {unit}, but the cell took {page.duration_s:.2f} s"


OF_TASKS = ("tasks-wait", "awaits-in-turn")
"""Findings about lines at which tasks waited, and no thread was: their times are in the table of awaits."""


def named_line_has_the_time(page: Page) -> Iterator[str]:
    """The line that a finding names has its time in the table."""
    for found in page.report["findings"]:
        place_ns = found.get("args", {}).get("place_ns")
        if found["file"] is None or not found["line"] or not place_ns:
            continue
        file = page.report["files"][found["file"]]
        if page.names["code"][file["code"]] not in ("cell", "user"):
            continue
        if file["lines"] and found["line"] > len(file["lines"]):
            yield f"{found['id']} names line {found['line']} of {len(file['lines'])}"
        if found["id"] == "no-line-stands-out":
            continue  # names a function
        of_tasks = found["id"] in OF_TASKS
        table, time = (page.report.get("awaits", []), "some_ns") if of_tasks else (page.lines(), "total_ns")
        rows = [row for row in table if (row["file"], row["line"]) == (found["file"], found["line"])]
        has_s, said_s = sum(row[time] for row in rows) / 1e9, place_ns / 1e9
        if has_s < said_s - POINTS * page.duration_s:
            yield f"{found['id']} gives line {found['line']} {said_s:.2f} s, the table {has_s:.2f} s"


def headline_agrees_with_table(page: Page) -> Iterator[str]:
    """The line of the headline has, in the printed table, the time that the sentence gives it."""
    found = re.search(
        rf"[Ss]pent (?:all|{NUMBER}) of {NUMBER} (s|ms|min) in ((?:Cell \[\d+\]:|line )\d+)", page.headline
    )
    if not found:
        return
    said = number(found[1] or found[2]) * UNITS_S[found[3]]
    row = re.search(rf"^ +{re.escape(found[4])} +{NUMBER} (s|ms|min) ", page.text, re.MULTILINE)
    if row and abs(number(row[1]) * UNITS_S[row[2]] - said) > POINTS * page.duration_s:
        yield f"the headline gives {found[4]} {said:.2f} s, the table {row[1]} {row[2]}"


def lines_add_up(page: Page) -> Iterator[str]:
    """The times of the lines, and what has none, are the thread's time."""
    target = page.report["targets"][0]
    if target.get("thread_ns") is None or target.get("no_line_ns") is None:
        return
    process = target["process"]
    main_only = sum(row["self_ns"] for row in page.lines(process))
    whole = target["thread_ns"]
    known = main_only + target["no_line_ns"]
    threads = [
        t for t in page.report["threads"] if t["process"] == process and not t["internal"] and not t["runs_cell"]
    ]
    if known < whole * (1 - POINTS) or (not threads and known > whole * (1 + POINTS)):
        yield f"lines have {known / 1e9:.2f} s of the thread's {whole / 1e9:.2f} s"


def computing_is_bounded(page: Page) -> Iterator[str]:
    """What a finding says was computed, the thread computed or wanted to."""
    could = page.own_s("main_cpu_s") + page.own_s("main_off_s")
    for found in page.report["findings"]:
        args = found.get("args", {})
        computes = found["id"] == "computing" or (found["id"] == "one-line" and args.get("cause") == "python")
        if computes and args["time_ns"] / 1e9 > could + (POINTS + page.unknown) * page.duration_s:
            yield f"{found['id']} {args['time_ns'] / 1e9:.2f} s, the thread had or wanted a CPU for {could:.2f} s"


def sleeping_is_bounded(page: Page) -> Iterator[str]:
    """A thread does not sleep while it computes."""
    rest = page.own_s("wall_s") - page.own_s("main_cpu_s") + POINTS * page.duration_s
    for found in page.report["findings"]:
        if found["id"] == "sleeps" and found["args"]["time_ns"] / 1e9 > rest:
            yield f"slept for {found['args']['time_ns'] / 1e9:.2f} s, the thread computed all but {rest:.2f} s"


def imports_import(page: Page) -> Iterator[str]:
    """Imports that take time bring modules."""
    for found in page.report["findings"]:
        if found["id"] == "imports" and page.own_s("modules") < 1:
            yield f"imports took {found['args']['time_ns'] / 1e9:.2f} s, no module is new"


def children_worked(page: Page) -> Iterator[str]:
    """Children that kept cores busy used CPU time."""
    for found in page.report["findings"]:
        args = found.get("args", {})
        if found["id"] != "waits-for-children" or not args.get("cores"):
            continue
        said, own = args["cores"] * args["time_ns"] / 1e9, page.own_s("children_cpu_s")
        if not page.partial and said > own + POINTS * page.duration_s * page.cores:
            yield f"children kept {args['cores']:.2f} cores busy, {said:.2f} s; by the cell's own clock {own:.2f} s"


def nothing_means_nothing(page: Page) -> Iterator[str]:
    """Where no line is named, no line has most of the time."""
    found = page.finding()
    if found is not None and found["id"] != "no-line-stands-out":
        return
    for row in page.lines(page.report["targets"][0]["process"]):
        if row["self_ns"] > 0.55 * page.report["duration_ns"] and len(page.report["lines"]) > 1:
            yield f"no line is named, line {row['line']} has {row['self_ns'] / 1e9:.2f} of {page.duration_s:.2f} s"


Check = Callable[[Page], Iterator[str]]

OF_THE_PAGE: tuple[Check, ...] = (
    shares_add_up,
    title_agrees_with_lane,
    lanes_are_below_the_machine,
    no_figure_above_the_machine,
    parts_are_of_the_duration,
    named_line_has_the_time,
    headline_agrees_with_table,
    lines_add_up,
    nothing_means_nothing,
)

AGAINST_THE_CLOCKS: tuple[Check, ...] = (
    title_has_the_wall_time,
    title_has_the_cpu_time,
    title_has_no_other_wait,
    lanes_have_the_cpu_time,
    computing_is_bounded,
    sleeping_is_bounded,
    imports_import,
    children_worked,
)


def contradictions(page: Page) -> list[str]:
    """Return all contradictions, each with the name of its check."""
    checks = OF_THE_PAGE + (AGAINST_THE_CLOCKS if page.clocks else ())
    return [f"{check.__name__}: {sentence}" for check in checks for sentence in check(page)]
