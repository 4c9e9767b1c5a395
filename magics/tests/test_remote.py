"""Results at places that fsspec knows: `-o URL`, reports that are read from there, %omni_perf save URL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from omni_perf import remote
from requirement import missing

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "engines" / "bin" / "python"
PROGRAM = ROOT / ".venv" / "bin" / "omni-perf"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    if not PYTHON.exists():
        missing("engines", "there is no fsspec in .cache/engines: tools/engines installs it (120 MB)")
    (tmp_path / "tmp").mkdir()
    return {
        **os.environ,
        "OMNI_PERF_PYTHON": str(PYTHON),
        "OMNI_PERF_BINARY": str(PROGRAM),
        "PYTHONPATH": str(ROOT / "magics"),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def run(environment: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def recorded(environment: dict[str, str], name: str) -> subprocess.CompletedProcess[str]:
    return run(environment, "run", "-o", name, "--interpreter", sys.executable, "-c", "import time; time.sleep(0.3)")


def test_a_run_is_written_to_a_url_and_merged_from_there(tmp_path: Path, environment: dict[str, str]) -> None:
    ran = recorded(environment, f"file://{tmp_path}/there/run.json")
    assert ran.returncode == 0 and f"handed over file://{tmp_path}/there/run.json" in ran.stderr, ran.stderr
    merged = run(environment, "merge", "-o", f"file://{tmp_path}/there/all", f"file://{tmp_path}/there/run.json")
    assert merged.returncode == 0, merged.stderr
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["all.html", "all.svg", "run.json"]
    assert list((tmp_path / "tmp").iterdir()) == [], "a local copy is left"


def test_what_cannot_be_handed_over_stays_here_and_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "file").write_text("no folder")
    ran = recorded(environment, f"file://{tmp_path}/file/run.json")
    kept = list((tmp_path / "tmp").glob("*/*/run.json"))
    assert ran.returncode == 3 and len(kept) == 1, ran.stderr
    assert json.loads(kept[0].read_text())["document"]
    assert f"they are in {kept[0].parent}" in ran.stderr and "could not be handed over" in ran.stderr


def test_a_script_that_fails_has_its_own_exit_code(tmp_path: Path, environment: dict[str, str]) -> None:
    name = f"file://{tmp_path}/run.json"
    ran = run(environment, "run", "-o", name, "--interpreter", sys.executable, "-c", "raise SystemExit(7)")
    assert ran.returncode == 7 and (tmp_path / "run.json").exists(), ran.stderr


def test_a_url_in_a_scripts_own_arguments_is_the_scripts(tmp_path: Path, environment: dict[str, str]) -> None:
    code = "import sys; print(sys.argv[1])"
    name = tmp_path / "run.json"
    ran = run(environment, "run", "-o", name, "--interpreter", sys.executable, "-c", code, "s3://data/x")
    assert ran.stdout == "s3://data/x\n"


def test_an_unknown_protocol_is_a_sentence(environment: dict[str, str]) -> None:
    ran = run(environment, "show", "nowhere://a/b.json")
    assert ran.returncode == 1 and "nowhere://a/b.json cannot be reached: Protocol not known" in ran.stderr, ran.stderr


def test_a_report_is_saved_and_read_in_memory(tmp_path: Path, environment: dict[str, str]) -> None:
    assert recorded(environment, str(tmp_path / "run.json")).returncode == 0
    code = (
        "import omni_perf; r = omni_perf.read('run.json'); print(r.save('memory://kept/all', 'json', 'svg'));"
        "print(omni_perf.read('memory://kept/all.json').headline == r.headline)"
    )
    ran = subprocess.run(
        [PYTHON, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "['memory://kept/all.json', 'memory://kept/all.svg']\nTrue\n", ran.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("s3://b/n", True), ("simplecache::s3://b/n", True), ("run", False), ("C:/run", False), ("/a/b://c", False), ("s3://", False)],
)  # fmt: skip
def test_urls_are_recognised(name: str, is_one: bool) -> None:
    assert remote.is_url(name) is is_one


def test_without_fsspec_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(remote.RemoteError, match=r"needs fsspec.*pip install 'omni_perf\[remote\]'"):
        remote.get("s3://b/n", "here")
