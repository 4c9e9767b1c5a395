"""omni_perf.analyze(): the real program on made-up traces, and a fake one that fails."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from omni_perf.analysis import Analysis, AnalysisError, analyze, make_traces
from omni_perf.tableview import SHOWN_ROWS, Table
from requirement import program


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks and a memory snapshot."""
    program()
    folder = tmp_path_factory.mktemp("traces")
    make_traces(folder, ranks=2, steps=4, straggler=1, answers=folder / "answers.txt")
    return folder


@pytest.fixture(scope="module")
def analysis(traces: Path) -> Analysis:
    return analyze(traces, memory_snapshot=traces / "memory_snapshot.pickle")


def test_figures_are_the_known_ones(traces: Path, analysis: Analysis) -> None:
    answers = json.loads((traces / "answers.txt").read_text())
    rows = {row["rank"]: row for row in analysis.tables["temporal_breakdown"]}
    assert len(rows) == 2
    for rank in answers["Ranks"]:
        assert rows[rank["Rank"]]["idle_time_us"] == pytest.approx(rank["Kept"]["Idle"] / 1000)


def test_display_has_pictures_and_text(analysis: Analysis) -> None:
    bundle, metadata = analysis._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    assert bundle["text/html"].count("<img") > 10
    # One step as a cell is shown: its data, which is no program, and the viewer's script.
    assert bundle["text/html"].count("<script") == 2
    assert bundle["text/html"].count('<script type="application/octet-stream;base64">') == 1
    assert "Where the device time went" in bundle["text/plain"]
    assert metadata == {}
    json.dumps(bundle)


def test_document_is_the_json_of_the_program(analysis: Analysis) -> None:
    document = analysis.to_dict()
    assert (document["document"], document["version"]) == ("omni_perf.analysis", 2)
    assert document["generator"]["name"] == "omni_perf"
    assert document["headline"] == {"finding": 0, "text": document["findings"][0]["text"]}
    assert document["ranks"] == [0, 1]
    assert "snapshot_peak" in analysis.tables
    assert analysis.warnings == []


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"schema": "omni-perf.analyze/1", "findings": []}, "older version of omni_perf: record again"),
        ({"document": "omni_perf.analysis", "version": 1}, "older version of omni_perf: record again"),
        ({"document": "omni_perf.analysis", "version": 3}, "newer version of omni_perf: update"),
        ({"document": "omni_perf.analysis"}, "no analysis"),
        ({"document": "omni_perf.report", "version": 2}, "no analysis"),
        ([], "no analysis"),
    ],
)
def test_a_document_of_another_version_is_refused(document: object, complaint: str) -> None:
    made = Analysis(json.dumps(document).encode(), {"bundle": {}, "tables": []})
    with pytest.raises(AnalysisError, match=complaint):
        made.to_dict()


def test_a_warning_names_what_it_is_about(analysis: Analysis) -> None:
    document = analysis.to_dict() | {
        "warnings": [
            {"file": "a.json", "byte": 0, "what": "it ends early", "lost": "the rest"},
            {"file": "a.json", "byte": None, "what": "it has no ranks", "lost": None},
            {"file": None, "byte": None, "what": "no trace has step 9", "lost": None},
        ]
    }
    made = Analysis(json.dumps(document).encode(), {"bundle": {}, "tables": []})
    assert made.warnings == [
        "a.json, byte 0: it ends early; the rest",
        "a.json: it has no ranks",
        "no trace has step 9",
    ]


def test_save_writes_what_it_is_called(analysis: Analysis, tmp_path: Path) -> None:
    assert analysis.headline.startswith("The devices of 2 ranks")
    name = str(tmp_path / "a")
    assert analysis.save(name) == [f"{name}.html", f"{name}.json"]
    assert json.loads((tmp_path / "a.json").read_text()) == analysis.to_dict()
    assert analysis.save(f"{name}.html") == [f"{name}.html"]
    assert analysis.save(name, "csv") == [name]
    assert (tmp_path / "a" / "temporal_breakdown.csv").stat().st_mode & 0o777 == 0o600
    with pytest.raises(AnalysisError, match="no format 'svg'"):
        analysis.save(name, "svg")
    with pytest.raises(AnalysisError, match="there is no folder"):
        analysis.save(tmp_path / "none" / "a.json")


def test_options_reach_the_program(traces: Path, tmp_path: Path) -> None:
    made = analyze(
        traces, mode="hta", ranks=[1], last_step=True, tables=["temporal_breakdown"],
        html=tmp_path / "page.html", csv=tmp_path / "csv",
        merged=tmp_path / "merged_trace.json", summary=tmp_path / "profiler_list.dat",
    )  # fmt: skip
    document = made.to_dict()
    assert (document["mode"], document["ranks"], document["include_last_step"]) == ("hta", [1], True)
    assert list(made.tables) == ["temporal_breakdown"]
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "csv" / "temporal_breakdown.csv").exists()
    assert json.loads((tmp_path / "merged_trace.json").read_text())["traceEvents"]
    assert "operators" not in made.tables
    assert (tmp_path / "profiler_list.dat").stat().st_size > 0


def test_frames_have_the_columns_of_hta(analysis: Analysis) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: to_pandas() needs it")
    frame = analysis.to_pandas("temporal_breakdown", hta_names=True)
    assert list(frame.columns)[:3] == ["rank", "idle_time(us)", "compute_time(us)"]
    assert "idle_time_us" in analysis.to_pandas("temporal_breakdown").columns


def test_a_table_displays_its_first_rows(analysis: Analysis) -> None:
    table = analysis["gpu_kernel_breakdown"]
    assert len(table) == len(analysis.tables["gpu_kernel_breakdown"]) > SHOWN_ROWS
    shown = table._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert shown.count("<tr>") == SHOWN_ROWS + 1
    assert f"{SHOWN_ROWS} of {len(table)} rows" in shown
    assert [row["rank"] for row in table[:2]] == [0, 0]
    assert table[0]["kernel_type"] in repr(table[:1])


def test_a_place_that_is_cut_keeps_its_file_and_line() -> None:
    place = "/home/somebody/" + "folder/" * 20 + "train.py:123"
    table = Table("t", "t", "", ["place", "name"], [{"place": place, "name": place}])
    _, _, row = repr(table).splitlines()
    assert row.startswith("…")
    assert "/train.py:123  /home" in row
    assert row.endswith("…")


def test_a_table_without_rows_says_so() -> None:
    table = Table("t", "Lines", "", [], [])
    assert repr(table).splitlines()[-1] == "no rows"
    assert "<p>no rows</p>" in table._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_foreign_text_in_a_table_stays_text() -> None:
    evil = "<script>alert(1)</script>\x1b[2J\u202e"
    table = Table("t", evil, evil, ["name", "us"], [{"name": evil, "us": None}])
    shown = table._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script" not in shown
    for text in (shown, repr(table)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "–" in shown


def test_without_pandas_a_sentence_says_what_to_do(analysis: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AnalysisError, match=r"install it or use tables"):
        analysis.to_pandas("temporal_breakdown")


def test_unknown_table_is_named(analysis: Analysis) -> None:
    with pytest.raises(AnalysisError, match="temporal_breakdown"):
        analysis["no_such_table"]


def test_missing_file_is_a_sentence(traces: Path) -> None:
    with pytest.raises(AnalysisError, match="no such file"):
        analyze(traces / "missing.json")


def test_paths_may_look_like_options(traces: Path) -> None:
    with pytest.raises(AnalysisError, match="--html: no such file"):
        analyze("--html")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo omni-perf analyze: the disk is full. >&2; exit 1", r"^the disk is full\.$"),
        ("exit 3", "ended with code 3"),
        ("kill -9 $$", "signal 9"),
    ],
)
def test_failure_of_the_program_is_reported(
    script: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "omni-perf"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("OMNI_PERF_BINARY", str(fake))
    with pytest.raises(AnalysisError, match=complaint):
        analyze(tmp_path)


def test_missing_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNI_PERF_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(AnalysisError, match="OMNI_PERF_BINARY"):
        analyze(tmp_path)


def test_the_package_offers_it_without_importing_it() -> None:
    code = (
        "import sys, omni_perf; assert 'omni_perf.analysis' not in sys.modules; "
        "assert callable(omni_perf.analyze) and callable(omni_perf.make_traces)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compare_is_of_the_later_run_against_this(traces: Path, tmp_path: Path) -> None:
    make_traces(tmp_path / "fast", ranks=2, steps=4, delay="0s", data_wait="200us")
    before = analyze(traces, memory_snapshot=traces / "memory_snapshot.pickle", ranks=[0, 1])
    for later in (tmp_path / "fast", analyze(tmp_path / "fast")):
        compared = before.compare(later)
        assert compared.headline.startswith("A step took ")
        assert " less than in " in compared.headline
        step = next(row for row in compared["changes"] if row["kind"] == "step")
        assert step["run"] == str(traces)
        assert step["verdict"] == "less"
    with pytest.raises(AnalysisError, match="one file, folder or glob each"):
        before.compare(
            analyze(tmp_path / "fast" / "rank0.pt.trace.json.gz", tmp_path / "fast" / "rank1.pt.trace.json.gz")
        )
