"""Results at places that fsspec knows: `-o URL`, reports that are read from there, %omni_perf save URL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from omni_perf import remote
from requirement import missing

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "engines" / "bin" / "python"
OBJECTS = ROOT / ".cache" / "sinks" / "bin" / "python"
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


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which s3://results is a bucket of an S3 server on this machine."""
    if not OBJECTS.exists():
        missing("sinks", "there is no S3 server in .cache/sinks: tools/sinks installs one (280 MB)")
    (tmp_path / "tmp").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "OMNI_PERF_PYTHON": str(OBJECTS),
        "OMNI_PERF_BINARY": str(PROGRAM),
        "PYTHONPATH": str(ROOT / "magics"),
        "TMPDIR": str(tmp_path / "tmp"),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "SERVER": "",
    }
    with (
        (tmp_path / "server.log").open("wb") as log,
        subprocess.Popen([OBJECTS, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log) as server,
    ):
        environment["SERVER"] = str(server.pid)
        make = "import boto3; boto3.client('s3').create_bucket(Bucket='results')"
        for _ in range(60):
            if not subprocess.run([OBJECTS, "-c", make], env=environment, capture_output=True, check=False).returncode:
                break
        try:
            yield environment
        finally:
            server.kill()


def objects(environment: dict[str, str]) -> list[str]:
    """List the keys of the bucket."""
    code = "import boto3; print(*(o['Key'] for o in boto3.client('s3').list_objects(Bucket='results').get('Contents', [])))"
    done = subprocess.run([OBJECTS, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_run_and_a_merge_by_an_s3_server(bucket: dict[str, str]) -> None:
    ran = recorded(bucket, "s3://results/runs/today.json")
    assert ran.returncode == 0 and "handed over s3://results/runs/today.json" in ran.stderr, ran.stderr
    merged = run(bucket, "merge", "-o", "s3://results/all", "s3://results/runs/today.json")
    assert merged.returncode == 0, merged.stderr
    assert objects(bucket) == ["all.html", "all.svg", "runs/today.json"]
    shown = run(
        bucket, "export", "s3://results/runs/today.json", "--format", "speedscope", "-o", "s3://results/runs/x.json"
    )
    assert shown.returncode == 0 and "runs/x.json" in objects(bucket), shown.stderr


def test_a_bucket_that_refuses_and_a_server_that_is_gone(tmp_path: Path, bucket: dict[str, str]) -> None:
    for place, gone in (("s3://nobodys/run.json", False), ("s3://results/run.json", True)):
        if gone:
            os.kill(int(bucket["SERVER"]), signal.SIGKILL)
        ran = recorded(bucket, place)
        (kept,) = (tmp_path / "tmp").glob("*/*/run.json")
        assert ran.returncode == 3 and f"they are in {kept.parent}" in ran.stderr, ran.stderr
        assert json.loads(kept.read_text())["document"], "the result is kept"
        shutil.rmtree(kept.parent.parent)


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
