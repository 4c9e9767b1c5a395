"""Reports as data: what read(), last() and merge_trace() give, from a real recording."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import omni_perf
import pytest
from omni_perf import program
from omni_perf.document import VersionError
from omni_perf.report import Report, SaveError, TraceError

SCRIPT = """
import time
def work():
    return sum(i * i for i in range(2_000_000))
work()
time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    script, saved = folder / "slow.py", folder / "saved.json"
    script.write_text(SCRIPT)
    done = program.run(["run", "-o", str(saved), "--interpreter", sys.executable, str(script)])
    assert done.returncode == 0, done.stderr
    return saved


@pytest.fixture(scope="module")
def report(saved: Path) -> Report:
    return omni_perf.read(saved)


def test_a_saved_report_is_read(report: Report, saved: Path) -> None:
    assert report.to_dict() == json.loads(saved.read_text())
    assert report.headline == report.to_dict()["headline"]["text"]
    assert report.name == "slow.py"
    assert report.duration_s == report.to_dict()["duration_ns"] / 1e9


def test_tables_have_names_in_place_of_indices(report: Report) -> None:
    assert set(report.tables) >= {
        "idle", "lines", "functions", "awaits", "memory", "threads", "processes", "devices", "findings", "steps", "regions", "ranks", "tracks",
    }  # fmt: skip
    lines = {row["line"]: row for row in report.tables["lines"]}
    assert lines[6]["text"] == "time.sleep(0.2)"
    assert lines[6]["file"].endswith("slow.py")
    assert 0.15 < lines[6]["state_s"]["waiting"] <= lines[6]["self_s"] < 2
    assert lines[6]["process"] == f"script {report.tables['processes'][0]['pid']}"
    assert all(0 <= row["incomplete_s"] <= row["self_s"] for row in lines.values())
    assert report.tables["processes"][0]["stacks"] == "read"
    assert "slow.py" in report["functions"]._repr_html_()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(KeyError, match="the tables are"):
        report["no_such_table"]


def test_what_was_cut_of_a_lines_time_is_shown(saved: Path, tmp_path: Path) -> None:
    document = json.loads(saved.read_text())
    for row in document["lines"]:
        row.pop("incomplete_ns", None)
    document["lines"][0]["incomplete_ns"] = document["lines"][0]["self_ns"] // 2
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(document))
    lines = omni_perf.read(cut).tables["lines"]
    assert lines[0]["incomplete_s"] == document["lines"][0]["self_ns"] // 2 / 1e9
    assert [row["incomplete_s"] for row in lines[1:]] == [0.0] * (len(lines) - 1)


def test_csv_has_the_columns_of_to_pandas(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: to_pandas() needs it")
    assert report.save(tmp_path / "tables", "csv") == [str(tmp_path / "tables")]
    for name in ("lines", "functions", "threads", "processes"):
        with open(tmp_path / "tables" / f"{name}.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        frame = report.to_pandas(name)
        assert list(rows[0]) == list(frame.columns), name
        assert len(rows) == len(frame), name
    assert set(report.to_pandas("tracks").columns) >= {"id", "t_s", "value", "unit"}


def test_csv_needs_no_pandas(report: Report, tmp_path: Path) -> None:
    report.save(tmp_path / "tables", "csv")
    with open(tmp_path / "tables" / "lines.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, line in zip(rows, report.tables["lines"], strict=True):
        assert list(row) == [
            *[key for key in line if key not in ("state_s", "process")],
            *[f"state_s.{state}" for state in line["state_s"]],
            "process",
        ]
        assert float(row["self_s"]) == line["self_s"]
        assert row["text"] == line["text"]
    tables = sorted(path.stem for path in (tmp_path / "tables").iterdir())
    assert tables == sorted(set(report.tables) - {"notes"})


def test_a_read_report_displays_itself(report: Report) -> None:
    data, _ = report._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    assert data["text/plain"] == report.headline
    assert data["text/html"].startswith("<img src=")


def trace_at(path: Path, wall_us: float) -> Path:
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    events = [{**kernel, "ts": wall_us + 1000 * i, "dur": 500} for i in range(100)]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_a_trace_is_merged(report: Report, tmp_path: Path) -> None:
    clock = report.to_dict()["hosts"][0]["clock"]
    merged = report.merge_trace(trace_at(tmp_path / "trace.json", clock["wall_ns"] / 1e3 + 50_000))
    kernels = merged.to_dict()["kernels"]
    assert [(lane["stream"], sum(lane["count"])) for lane in kernels] == [(7, 100)]
    (device,) = merged.tables["devices"]
    assert device["busy_s"] == pytest.approx(0.05, abs=1e-4)
    assert "known to" in merged.tables["notes"][-1]["text"]
    assert merged.tables["lines"] == [
        {**row, "idle_s": merged.tables["lines"][i]["idle_s"]} for i, row in enumerate(report.tables["lines"])
    ]
    assert "kernels" not in report.to_dict()


def test_tables_are_json(report: Report) -> None:
    for name, table in report.tables.items():
        assert json.loads(json.dumps(table)) == [dict(row) for row in table], name
    assert len(json.loads(json.dumps(report.tables["lines"][:1]))) == 1


def test_a_trace_of_another_time_is_not(report: Report, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="not taken during this recording: it ended"):
        report.merge_trace(trace_at(tmp_path / "trace.json", 1e15))
    with pytest.raises(TraceError, match="no such file"):
        report.merge_trace(tmp_path / "none.json")


READ_LARGE = """
import re, resource, sys, omni_perf
try:
    print(omni_perf.read(sys.argv[1]).headline)
finally:
    own = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
    print((own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024)
"""


@pytest.mark.parametrize(
    ("begin", "repeated", "end", "said"),
    [
        ('{"functions":[', "{},", "{}]}", 'more than 1,048,576 elements of "functions"'),
        ("", "   ", "", "more than 1,048,576 blanks"),
        ('{"unknown":["",', "0,0,", "0],", ""),
    ],
)
def test_a_file_of_any_size_costs_little(
    report: Report, tmp_path: Path, begin: str, repeated: str, end: str, said: str
) -> None:
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write(begin)
        for _ in range(300):
            file.write(repeated * 250_000)
        file.write(end if said else end + json.dumps(report.to_dict())[1:])
    done = subprocess.run([sys.executable, "-c", READ_LARGE, str(path)], capture_output=True, text=True, check=False)
    *rest, megabytes = done.stdout.splitlines()
    assert int(megabytes) < 150
    if said:
        assert "VersionError" in done.stderr and said in done.stderr
    else:
        assert rest == [report.headline]


def test_what_is_no_report_is_a_sentence(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text, said in (
        ("[]", "no report of omni_perf"),
        ("{", "no report of omni_perf"),
        ("\udcff", "no report of omni_perf"),
        ('{"schema_version": 1}', "record again"),
        ('{"document": "omni_perf.report", "version": 3}', "update this one"),
    ):
        path.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(VersionError, match=said):
            omni_perf.read(path)
    path.write_bytes(gzip.compress(json.dumps(report.to_dict()).encode()))
    assert omni_perf.read(path).headline == report.headline
    with pytest.raises(FileNotFoundError):
        omni_perf.read(tmp_path / "none.json")
    with pytest.raises(SaveError, match="there is no folder"):
        report.save(tmp_path / "none" / "a.svg")
