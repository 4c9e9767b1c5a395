"""Our output and page beside what other profilers show: bytes, time until the picture is there, frames while zooming.

Each profiler records the same program (program.py) for 10 and for 60 seconds. speedscope is given our own recording in
its format, and so draws the same calls; likewise an hour's and one of 100,000 random stacks, which are made up. All is
opened from files, offline, in headless Chromium that paints in software, WebGL too; a recording's pages take turns.

    bytes      what is kept: of a notebook's output, a page, a profile (speedscope's own script is 0.5 MB more)
    picture    from opening until the profile is on the screen, median of the rounds
    script     time of the page's scripts per frame, while each frame zooms
    interval   between such frames, to that of a canvas that is only cleared, in the same tab in turn

The peers are installed into .cache/bench/pages; what cannot be had is named and left out.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frames import EMPTY, PROBE, WAIT, ZOOM, chromium

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "program.py"
INSTALLED = ROOT / ".cache" / "bench" / "pages"
SPEEDSCOPE = "speedscope@1.25.0"
PACKAGES = ["pyinstrument==5.1.3", "memray==1.20.0", "scalene==2.4.0"]
MADE_UP = {"hour": "1 h, made up", "random": "100,000 random stacks"}


@dataclass(frozen=True)
class Shown:
    """A page that shows a profile."""

    by: str
    of: str  # what was recorded
    url: str
    size: int
    ready: str  # an expression that is true as soon as the profile is on the screen
    zooms: str = ""  # brings up what zooms by ctrl and the wheel, and returns it; empty: nothing does


OURS = "document.querySelector('.opv svg')"
OUR_LANES = """async () => {
    const box = document.querySelector('.opv');
    box.focus();
    box.dispatchEvent(new KeyboardEvent('keydown', {key: 'w', bubbles: true}));
    while (!box.querySelector('.o-lanes canvas')?.width) await new Promise((r) => setTimeout(r, 5));
    return box.querySelector('.o-lanes');
}"""
SPEEDSCOPES = "document.body.textContent.includes('Left Heavy') && document.querySelectorAll('canvas').length > 1"
AT_A_POINT = "async () => document.elementFromPoint(580, 300)"


@dataclass(frozen=True)
class Peer:
    """A profiler that writes a page."""

    by: str
    page: str
    commands: Callable[[str, str], list[list[str]]]  # of python -m, for a program and its argument
    ready: str


PAGES = [
    Peer(
        "pyinstrument",
        "page.html",
        lambda program, seconds: [["pyinstrument", "-r", "html", "-i", "0.001", "-o", "page.html", program, seconds]],
        "document.querySelector('#app').textContent.length > 200",
    ),
    Peer(
        "memray",
        "page.html",
        lambda program, seconds: [
            ["memray", "run", "-f", "-q", "-o", "memray.bin", program, seconds],
            ["memray", "flamegraph", "-f", "-o", "page.html", "memray.bin"],
        ],
        "document.querySelector('#chart svg g')",
    ),
    Peer(
        "Scalene",
        "scalene-profile.html",
        lambda program, seconds: [
            ["scalene", "run", "--cpu-only", "-o", "scalene.json", program, seconds],
            ["scalene", "view", "--standalone", "scalene.json"],
        ],
        "document.querySelectorAll('table').length > 1",
    ),
]


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command; the last line of its complaint, or nothing."""
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it failed"])[-1]


def install() -> list[str]:
    """Install the peers; what could not be had."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    npm = (
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        INSTALLED,
        SPEEDSCOPE,
    )
    if not (INSTALLED / "node_modules" / "speedscope").exists():
        why = run(*npm) if shutil.which("npm") else "npm is not here"
        missing += [f"speedscope: {why}"] if why else []
    python = INSTALLED / "venv" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", INSTALLED / "venv")
        for package in PACKAGES:
            if why := run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", package):
                missing.append(f"{package}: {why}")
    return missing


def recorded(folder: Path, seconds: int, missing: list[str]) -> Iterator[Shown]:
    """What each profiler shows of the program."""
    of, ours = f"{seconds} s", folder / f"ours-{seconds}"
    binary, output = Path(sys.executable).parent / "omni-perf", folder / f"output-{seconds}"
    output.mkdir(exist_ok=True)
    for command in (
        (binary, "run", "-o", ours, "--format", "json,html,speedscope", PROGRAM, str(seconds)),
        ("go", "run", "./sidecar/testkit/harness", "-report", ours.with_suffix(".json"), "-o", output),
    ):
        if why := run(*command):
            sys.exit(f"{command[0]}: {why}")
    html = (output / "cell.html").read_text()
    cell = output / "page.html"
    cell.write_text(f"<!doctype html><meta charset=utf-8>{html}")
    yield Shown("omni_perf, output", of, cell.as_uri(), len(html.encode()), OURS, OUR_LANES)
    page = ours.with_suffix(".html")
    yield Shown("omni_perf, page", of, page.as_uri(), page.stat().st_size, OURS, OUR_LANES)
    yield from speedscope(ours, of, Path(f"{ours}.speedscope.json").read_bytes())
    for peer in PAGES:
        there = folder / f"{peer.by}-{seconds}"
        there.mkdir(exist_ok=True)
        python = INSTALLED / "venv" / "bin" / "python"
        whys = [run(python, "-m", *c, folder=there) for c in peer.commands(str(PROGRAM), str(seconds))]
        page = there / peer.page
        if page.exists():
            yield Shown(peer.by, of, page.as_uri(), page.stat().st_size, peer.ready)
        else:
            missing.append(f"{peer.by}, {of}: {next((w for w in whys if w), 'no page')}")


def made_up(folder: Path) -> Iterator[Shown]:
    """Recordings that nobody has to wait for."""
    for arguments in ([], ["-spans", "100000"]):
        if why := run("go", "run", "./sidecar/testkit/harness", "-o", folder, *arguments):
            sys.exit(f"harness: {why}")
    for name, of in MADE_UP.items():
        page = folder / f"{name}.html"
        yield Shown("omni_perf, output", of, page.as_uri(), page.stat().st_size, OURS, OUR_LANES)
        packed = (folder / f"{name}.payload").read_text().split("\n", 1)[1]
        document = json.loads(gzip.decompress(base64.b64decode(packed)))
        yield from speedscope(folder / name, of, speedscope_of(document))


def speedscope(name: Path, of: str, profile: bytes) -> Iterator[Shown]:
    """A profile in speedscope, if that is here: as its command line opens one."""
    package = INSTALLED / "node_modules" / "speedscope"
    if not package.exists():
        return
    script = Path(f"{name}.speedscope.js")
    script.write_text(f"speedscope.loadFileFromBase64('{name.name}', '{base64.b64encode(profile).decode()}')")
    url = f"{(package / 'dist' / 'release' / 'index.html').as_uri()}#localProfilePath={script}"
    yield Shown("speedscope", of, url, len(profile), SPEEDSCOPES, AT_A_POINT)


def speedscope_of(document: dict[str, Any]) -> bytes:
    """A made-up recording in speedscope's format: a profile per thread, each span a sample."""
    files = document["files"]
    frames = [{"name": f["name"], "file": files[f["file"]]["name"]} for f in document["functions"]]
    parents, functions = document["nodes"]["parent"], document["frames"]["function"]
    stacks: list[list[int]] = [[]]
    for node in range(1, len(parents)):
        stacks.append([*stacks[parents[node]], functions[document["nodes"]["frame"][node]]])
    spans = document["spans"]
    profiles: list[dict[str, Any]] = []
    for thread, (first, end) in enumerate(zip(spans["first"], spans["first"][1:], strict=False)):
        samples: list[list[int]] = []
        weights: list[int] = []
        for i in range(first, end):
            gap, length, node = (int(spans[column][i]) for column in ("gap_us", "length_us", "node"))
            samples += [[], stacks[node]] if gap else [stacks[node]]
            weights += [gap, length] if gap else [length]
        profiles.append(
            {
                "type": "sampled", "name": document["threads"][thread]["name"], "unit": "microseconds",
                "startValue": 0, "endValue": sum(weights), "samples": samples, "weights": weights,
            }
        )  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"$schema": schema, "shared": {"frames": frames}, "profiles": profiles}).encode()


def measure(pages: list[Shown], rounds: int, frames: int) -> list[dict[str, Any]]:
    """Open each page so often, in turn, and zoom in it."""
    from playwright.sync_api import Error, sync_playwright

    opened: list[list[float]] = [[] for _ in pages]
    script: list[list[float]] = [[] for _ in pages]
    ratios: list[list[float]] = [[] for _ in pages]
    software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium(), args=software)
        for i, page in [each for _ in range(rounds) for each in enumerate(pages)]:
            context = browser.new_context(viewport={"width": 1160, "height": 1000}, offline=True)
            tab: Any = context.new_page()
            tab.add_init_script(PROBE + WAIT % page.ready)
            try:
                tab.goto(page.url, wait_until="commit")
                # memray's page wants scripts of a network's.
                tab.wait_for_function("() => window.shown_at", timeout=5_000 if page.by == "memray" else 60_000)
                opened[i].append(tab.evaluate("() => window.shown_at"))
                if page.zooms:
                    block = tab.evaluate(ZOOM, [page.zooms, frames])
                    empty = tab.evaluate(EMPTY % "{width: 1000, height: 600}", frames)["intervals"]
                    script[i].append(block["script"])
                    ratios[i].append(statistics.mean(block["intervals"]) / statistics.mean(empty))
            except Error as e:  # it shows nothing: no figure
                print(f"{page.by}, {page.of}: {e.message.splitlines()[0]}", file=sys.stderr)
            context.close()
        browser.close()
    return [
        {
            "by": page.by, "of": page.of, "bytes": page.size,
            "picture_ms": middle(opened[i]), "script_ms": middle(script[i]), "interval": middle(ratios[i]),
        }
        for i, page in enumerate(pages)
    ]  # fmt: skip


def middle(values: list[float]) -> float | None:
    """The median; nothing of nothing."""
    return statistics.median(values) if values else None


def table(figures: list[dict[str, Any]]) -> str:
    """The figures, each peer's with its ratio to ours of the same recording."""
    heads = ["recording", "shown by", "bytes", "picture, ms", "script per frame, ms", "interval to empty canvas"]
    lines = [heads, ["---"] * len(heads)]
    for f in figures:
        ours = next(o for o in figures if o["of"] == f["of"])

        def cell(key: str, digits: int, f: dict[str, Any] = f, ours: dict[str, Any] = ours) -> str:
            if f[key] is None:
                return "–"
            compared = f is not ours and ours[key] and key != "interval"
            return f"{f[key]:,.{digits}f}" + (f" ({f[key] / ours[key]:.2g}×)" if compared else "")

        lines.append(
            [f["of"], f["by"], cell("bytes", 0), cell("picture_ms", 0), cell("script_ms", 1), cell("interval", 2)]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Record, measure, print a table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seconds", type=int, nargs="*", default=[10, 60])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--frames", type=int, default=60, help="per round")
    arguments.add_argument("--json", type=Path, help="write the figures to a file, too")
    given = arguments.parse_args()
    folder = ROOT / "build" / "viewer" / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    missing = install()
    pages = [p for s in given.seconds for p in recorded(folder, s, missing)] + list(made_up(folder))
    figures: list[dict[str, Any]] = []
    for of in dict.fromkeys(p.of for p in pages):
        figures += measure([p for p in pages if p.of == of], given.rounds, given.frames)
        print(table([f for f in figures if f["of"] == of]), flush=True)
    for line in missing:
        print("not here:", line)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
