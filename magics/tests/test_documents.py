"""What the documents name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_that_hold_a_promise_exist() -> None:
    page = (ROOT / "docs" / "robustness.md").read_text()
    named = set(re.findall(r"\b(?:(?:Test|Fuzz)[A-Z]\w+|test_\w+(?:\.py)?)", page))
    tests = list((ROOT / "magics" / "tests").rglob("test_*.py"))
    there = {path.name for path in tests}
    for path in tests:
        there.update(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    for folder in ("bench", "cmd", "jupyter", "sidecar"):
        for path in (ROOT / folder).rglob("*_test.go"):
            there.update(re.findall(r"^func ((?:Test|Fuzz)\w+)", path.read_text(), re.MULTILINE))
    assert named - there == set()


@pytest.mark.parametrize(
    "file", ["cmd/omni-perf/main.go", "hatch_build.py", "pyproject.toml", "Makefile", "tools/wheels.py"]
)
def test_the_version_is_written_in_one_place(file: str) -> None:
    from omni_perf import __version__

    assert __version__ not in (ROOT / file).read_text()


PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "architecture.md",
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_refers_to_exists(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [name for name in links if not (page.parent / name).exists()] == []
    top = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    quoted = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)*)`", text))
    paths = {name for name in quoted if "/" in name and name.split("/")[0] in top}
    assert [name for name in sorted(paths) if not (ROOT / name).exists()] == []
    files = {name for name in quoted - paths if re.search(r"\.(go|py|ts|json|proto)$", name)}
    assert [name for name in sorted(files) if not any(fits(name))] == []


def fits(name: str) -> Iterator[Path]:
    """The source files whose path ends so: the decisions name a file by its package."""
    for folder in ("bench", "cmd", "jupyter", "magics", "sidecar", "tools"):
        for path in (ROOT / folder).rglob(Path(name).name):
            if f"/{path.relative_to(ROOT)}".endswith(f"/{name}"):
                yield path


def test_the_architecture_page_is_short_and_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert len(text.splitlines()) <= 150
    floors = {path.name for path in (ROOT / "sidecar").iterdir() if path.is_dir() and path.name != "api"}
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    assert set(rows) == floors
    for floor, row in rows.items():
        packages = {path.parent.name for path in (ROOT / "sidecar" / floor).glob("*/*.go")}
        assert set(re.findall(r"`(\w+)`", row)) == packages, floor


def test_every_decision_is_in_the_index_once_and_has_a_date() -> None:
    folder = ROOT / "docs" / "decisions"
    index = re.findall(r"^- \[(.+)\]\((\S+\.md)\)$", (folder / "README.md").read_text(), re.MULTILINE)
    pages = {path.name: path.read_text() for path in folder.glob("*.md") if path.name != "README.md"}
    assert sorted(name for _, name in index) == sorted(pages)
    for title, name in index:
        assert re.match(rf"# {re.escape(title)}\n\nDecided \d{{4}}-\d\d-\d\d[.,].*\n\n\S", pages[name]), name


def sources(*endings: str) -> Iterator[Path]:
    """The files that people write, without recordings and what is built."""
    for top in [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*.py"), *(ROOT / name for name in WRITTEN)]:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.suffix in endings and path.name not in BUILT and not any(part in SKIPPED for part in path.parts):
                yield path


WRITTEN = ["bench", "cmd", "docs", "jupyter", "magics", "sidecar", "tools"]
SKIPPED = {"testdata", "node_modules", "__pycache__", "assets", "labextension", "build"}
BUILT = {"omni_perf.pb.go", "omni_perf_grpc.pb.go"}

# Verbs of our own for what has a plain one: report, show, return, contain, name, know; predict; estimate; be.
PRIVATE = re.compile(
    r"\b(?:tells?|told|telling|untold|tellable|foretells?|foretold|unrest|reckon(?:s|ed)?)\b"
    r"|\b_?(?:tell|told)(?:_[a-z]|[A-Z])\w*|\b\w+(?:Told|Tells?)\b"
    r"|\bstands? (?:on|under|below|behind|beside|before|above|where|there|here|first|alone)\b",
    re.IGNORECASE,
)
PLAIN = re.compile(
    r"\b(?:tell|tells|told|telling)\b[^.;]*?\b(?:apart|from|between)\b|\.tell\(\)|\w*Tells\w+From\w*",
    re.IGNORECASE,
)
"""Plain English with the same words: to tell two things apart, or one from another."""


@pytest.mark.parametrize("folder", [*WRITTEN, "."])
def test_prose_uses_plain_verbs(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in sources(".go", ".py", ".ts", ".md", ".c", ".h", ".proto", ".css")
        if path.relative_to(ROOT).parts[0] == folder or (folder == "." and path.parent == ROOT)
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if PRIVATE.search(PLAIN.sub("", line))
    ]
    assert found == []


# Coordinates of pictures, limits in errors of documents, and the sampler, which is below package words.
NO_FIGURES = re.compile(
    r"/(?:words|testkit|synth)/|show/chart/(?:scene|inhtml)/|show/live/panel/html\.go|traces/page/(?:series|bars|canvas)\.go"
    r"|report/check\.go|pystack/session\.go"
)


def test_figures_are_rounded_by_one_rule() -> None:
    """Go's own verbs round half to even, and %g falls back to exponents."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in sources(".go")
        if path.is_relative_to(ROOT / "sidecar") or path.is_relative_to(ROOT / "cmd")
        if not path.name.endswith("_test.go") and not NO_FIGURES.search(str(path))
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if re.search(r"%[-+ 0]*\d*\.\d+[feg]", line)
    ]
    assert found == []
