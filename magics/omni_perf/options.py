"""Reads the options of the magics: a bad option gives a sentence, never an exception."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from textwrap import fill

# Relative: this module is part of another package, too, in a program under `omni-perf run --torch`.
from . import contract
from .schedule import FIGURES, Schedule, of_figures

CELL_USAGE = (
    "%%omni_perf [-p SECONDS] [-s SECONDS] [--children none|tracks|stacks] [--name NAME] [--live] [--quiet] "
    "[--exact] [--torch [wait=N warmup=N active=N repeat=N skip_first=N] [--shapes] [--stack] "
    "[--torch-memory] [--flops] [--modules]] [--prof_dir DIR] [--kernel-wait SECONDS] "
    "[--memory [exact|device]] [--cluster CLIENT]"
)
CELL_HELP = f"""\
{fill(CELL_USAGE, 100, subsequent_indent=" " * 8, break_on_hyphens=False)}
    Profile this cell: on top of it, alone on its line.
    -p SECONDS   stack sampling interval (default {contract.DEFAULT_INTERVAL_S:g})
    -s SECONDS   system and GPU sampling interval (default {contract.DEFAULT_SYSTEM_INTERVAL_S:g})
    --children WHAT
                 what to record of child processes: none, tracks (figures), or stacks (default)
    --name NAME  a name to show
    --live       show the cell while it runs, where its chart comes at last
    --quiet      no chart; %omni_perf last shows it
    --exact      when exactly the GPU worked, as torch.profiler records it: nothing else is recorded
                 of torch, and its idle time is exact
    --torch [wait=N warmup=N active=N repeat=N skip_first=N]
                 run torch.profiler: around the cell, or in windows of its steps (default
                 wait=0 warmup=1 active=3 repeat=1 skip_first=0, as in torch.profiler.schedule)
    --shapes --stack --torch-memory --flops --modules
                 what torch.profiler records besides: inputs' shapes, Python's stacks,
                 allocations, floating-point operations, TorchScript's modules
    --prof_dir DIR
                 with --exact or --torch: keep the traces there, with one of all, tables and more
    --kernel-wait SECONDS
                 with --exact or --torch: shorter gaps of the GPU are between queued kernels
                 (default {contract.DEFAULT_KERNEL_WAIT_S * 1e6:g}us)
    --memory     as --memory device, where the cell uses GPUs; what the process itself grew by is always shown
    --memory exact
                 record every allocation of the cell with memray, which makes it slower
    --memory device
                 have torch record what the cell allocates on GPUs, into HOST_TIME.pickle, and show it
    --cluster CLIENT
                 record the workers, too: of the client of Dask or ipyparallel in that variable, or of ray
"""

ON_USAGE = "%omni_perf on [-t SECONDS] [-p SECONDS] [-s SECONDS] [--children none|tracks|stacks]"

CHILDREN = ("none", "tracks", "stacks")


@dataclass(frozen=True)
class Torch:
    """What was asked of torch.profiler."""

    shapes: bool = False
    stack: bool = False
    memory: bool = False
    flops: bool = False
    modules: bool = False
    exact: bool = field(default=False, kw_only=True)
    """Only when devices worked, of the whole cell; what else is asked does not matter."""
    schedule: Schedule | None = field(default=None, kw_only=True)
    """None: that of omni_perf.schedule(), or the whole cell."""
    folder: str = field(default="", kw_only=True)
    """Where the traces are kept; empty: nowhere."""
    spool: str = field(default="", kw_only=True)
    """Where they are written, under `omni-perf run`; empty: in a folder of ours."""


@dataclass(frozen=True)
class Options:
    """What a person asked of one recording; intervals in ns, 0 for the sidecar's default."""

    interval_ns: int = 0
    system_interval_ns: int = 0
    children: str = "stacks"
    name: str = ""
    live: bool = False
    quiet: bool = False
    threshold_ns: int = 1_000_000_000
    torch: Torch | None = None
    kernel_wait_ns: int = 0
    allocations: bool = False
    """Of the cell, by memray."""
    device_history: bool = False
    """Of the cell's allocations on GPUs, by torch."""
    expects_devices: bool = True
    """Whether it is said where there is no such history."""
    cluster: str = ""
    """The name of the variable with the client of an engine; empty: no workers are recorded."""


@dataclass
class Parsed:
    """The options that were understood, what was left over, and what was wrong."""

    options: Options = field(default_factory=Options)
    rest: str = ""
    problem: str = ""
    wants_help: bool = False


def parse_cell(line: str) -> Parsed:
    """Read the options behind ``%%omni_perf``."""
    parsed = _parse(line, CELL_USAGE, _CELL_OPTIONS)
    if parsed.rest and not parsed.problem:
        parsed.problem = _unknown(parsed.rest.split()[0], CELL_USAGE, _CELL_OPTIONS)
    return parsed


def parse_on(line: str) -> Parsed:
    """Read the options behind ``%omni_perf on``."""
    parsed = _parse(line, ON_USAGE, _ON_OPTIONS)
    if parsed.rest and not parsed.problem:
        parsed.problem = _unknown(parsed.rest.split()[0], ON_USAGE, _ON_OPTIONS)
    return parsed


def parse_statement(line: str) -> Parsed:
    """Read the options in front of the statement of ``%omni_perf STATEMENT``."""
    return _parse(line, CELL_USAGE[1:] + " STATEMENT", _CELL_OPTIONS)


_OF_TORCH = ("--shapes", "--stack", "--torch-memory", "--flops", "--modules")
"""In the order of Torch's fields."""
_FLAGS = {"--live", "--quiet", "--exact", "--torch", *_OF_TORCH}
_ON_OPTIONS = {"-t", "-p", "-s", "--children"}
_CELL_OPTIONS = {"-p", "-s", "--children", "--name", "--prof_dir", "--kernel-wait", "--memory", "--cluster", *_FLAGS}

_UNITS = (("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
"""Behind a number of seconds, as the command line has them too."""

_SPELLINGS = {
    "--prof_interval": "-p",
    "--sys_interval": "-s",
    "--threshold": "-t",
    "--prof-dir": "--prof_dir",
}


def _parse(line: str, usage: str, known: set[str]) -> Parsed:
    """Take options off the front of line until something that is none."""
    values: dict[str, str] = {}
    problem = ""
    wants_help = False
    rest = line.strip()
    while rest.startswith("-") or ("--torch" in values and _is_figure(rest.partition(" ")[0])):
        if not rest.startswith("-"):  # behind another option
            figures, rest = _figures(rest)
            values["--torch"] += " " + figures
            rest = rest.strip()
            continue
        word, _, after = rest.partition(" ")
        if word == "--":
            rest = after.strip()
            break
        word, equals, value = word.partition("=")
        option = _SPELLINGS.get(word, word)
        if option in ("-h", "--help"):
            wants_help = True
            rest = after.strip()
            continue
        if option not in known:
            problem = _unknown(word, usage, known)
            break
        if option in _FLAGS:
            values.setdefault(option, "")
        else:
            if option == "--memory" and not equals and (not after.strip() or after.lstrip().startswith("-")):
                value = "used"
            elif not equals:
                value, after = _first_word(after)
            if not value:
                problem = f"{word} needs a value; use {usage}."
                break
            values[option] = value
        rest = after.strip()
    options, wrong = _options(values)
    return Parsed(options, rest, problem or wrong, wants_help)


def _unknown(word: str, usage: str, known: set[str]) -> str:
    """Say that a word is no option, and which one is most likely meant."""
    import difflib  # rarely needed

    near = difflib.get_close_matches(word if word.startswith("-") else "--" + word, known, 1, 0.7)
    if not near and "--torch" in known and "=" in word:
        near = [figure + "=N" for figure in difflib.get_close_matches(word.partition("=")[0], FIGURES, 1, 0.7)]
    return f"{word!r} is not an option; " + (f"did you mean {near[0]}?" if near else f"use {usage}.")


def _is_figure(word: str) -> bool:
    """Whether a word is one that --torch takes, such as wait=2, or several with commas, as omni-perf run has them."""
    return word.partition("=")[0] in FIGURES and "=" in word


def _figures(text: str) -> tuple[str, str]:
    """Split off words such as wait=2, which --torch takes, from the rest."""
    words: list[str] = []
    while _is_figure(found := text.lstrip().partition(" ")[0]):
        words += found.split(",")
        text = text.lstrip()[len(found) :]
    return " ".join(words), text


def _torch_options(values: dict[str, str]) -> tuple[Torch | None, list[str]]:
    """Convert what concerns torch.profiler; a bad schedule is left out."""
    asked = Torch(*(option in values for option in _OF_TORCH), folder=values.get("--prof_dir", ""))
    if "--torch" not in values:
        lonely = [option for option in _OF_TORCH if option in values]
        problems = [f"{lonely[0]} belongs to --torch, which is missing."] if lonely else []
        if "--exact" in values:
            return Torch(exact=True, folder=asked.folder), problems
        for option in ("--prof_dir", "--kernel-wait"):
            if option in values:
                problems.append(f"{option} belongs to --exact or --torch, which are missing.")
        return None, problems
    if "--exact" in values:
        del values["--exact"]
        torch, problems = _torch_options(values)
        return torch, ["--torch records when exactly GPUs worked, too, so --exact is left out.", *problems]
    figures: dict[str, int] = {}
    for word in values["--torch"].split():
        name, _, figure = word.partition("=")
        if not figure.isdecimal():
            return asked, [
                f"{name} takes a whole number, such as {name}=2, not {figure!r}: the cell is recorded as a whole."
            ]
        figures[name] = int(figure)
    if not figures:
        return asked, []
    schedule = of_figures(figures)
    if schedule.problem:
        return asked, [f"{schedule.problem} The cell is recorded as a whole."]
    return replace(asked, schedule=schedule), []


def _first_word(text: str) -> tuple[str, str]:
    """Split off one shell word, so that --name 'two words' works."""
    stream = io.StringIO(text)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        word = lexer.get_token()
    except ValueError:  # an open quote
        first, _, after = text.strip().partition(" ")
        return first, after
    return word or "", text[stream.tell() :]


def _options(values: dict[str, str]) -> tuple[Options, str]:
    """Convert values to Options; a bad one keeps its default and gives a sentence."""
    problems: list[str] = []

    def duration(option: str, default: int, accepts: Callable[[int], bool], example: str) -> int:
        text = values.get(option)
        if text is None:
            return default
        number, unit = text, 1e9
        for name, size in _UNITS:
            if text.endswith(name):
                number, unit = text[: -len(name)], size
                break
        try:
            duration_ns = round(float(number) * unit)
        except (ValueError, OverflowError):
            duration_ns = -1
        if not accepts(duration_ns):
            problems.append(f"{option} takes seconds, such as {option} {example}, not {text!r}.")
            return default
        return duration_ns

    def interval(duration_ns: int) -> bool:
        return 0 < duration_ns <= contract.LONGEST_INTERVAL_S * 1e9

    children = values.get("--children", Options.children)
    if children not in CHILDREN:
        problems.append(f"--children takes none, tracks or stacks, not {children!r}.")
        children = Options.children
    if "--live" in values and "--quiet" in values:
        problems.append("--quiet shows nothing, so --live is left out.")
        del values["--live"]
    if values.get("--memory", "exact") not in ("exact", "device", "used"):
        problems.append(f"--memory takes exact or device, not {values['--memory']!r}.")
    torch, wrong = _torch_options(values)
    problems += wrong
    options = Options(
        torch=torch,
        children=children,
        interval_ns=duration("-p", 0, interval, f"{contract.DEFAULT_INTERVAL_S:g}"),
        system_interval_ns=duration("-s", 0, interval, f"{contract.DEFAULT_SYSTEM_INTERVAL_S:g}"),
        name=values.get("--name", ""),
        live="--live" in values,
        quiet="--quiet" in values,
        allocations=values.get("--memory") == "exact",
        device_history=values.get("--memory") in ("device", "used"),
        expects_devices=values.get("--memory") != "used",
        cluster=values.get("--cluster", ""),
        kernel_wait_ns=duration("--kernel-wait", 0, interval, "30us"),
        threshold_ns=duration("-t", Options.threshold_ns, lambda duration_ns: duration_ns >= 0, "1"),
    )
    return options, " ".join(problems)
