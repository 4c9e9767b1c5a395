"""Reports that are handed over to W&B, MLflow and TensorBoard, and read by OpenTelemetry's own types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import omni_perf
import pytest
from omni_perf import program
from omni_perf.report import Report
from omni_perf.sinks import SinkError
from requirement import missing

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "sinks" / "bin" / "python"
SCRIPT = """
import time, omni_perf
def work():
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        sum(range(100))
for _ in range(5):
    work()
    omni_perf.step(samples=8)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sinks")
    script, saved = folder / "train.py", folder / "train.json"
    script.write_text(SCRIPT)
    done = program.run(["run", "-o", str(saved), "--interpreter", sys.executable, str(script)])
    assert done.returncode == 0, done.stderr
    return saved


@pytest.fixture(scope="module")
def report(saved: Path) -> Report:
    return omni_perf.read(saved)


def with_packages(code: str, saved: Path, folder: Path) -> Any:
    """Run code where the packages are, with the report as ``report``; return what it assigns to ``found``."""
    if not (PYTHON.parents[1] / ".complete").exists():
        missing("sinks", "there is no MLflow in .cache/sinks: tools/sinks installs it (190 MB)")
    code = f"import json, omni_perf\nreport = omni_perf.read({str(saved)!r})\n{code}\nprint(json.dumps(found))"
    environment = {
        **os.environ,
        "OMNI_PERF_BINARY": str(ROOT / ".venv" / "bin" / "omni-perf"),
        "PYTHONPATH": str(ROOT / "magics"),
        "HOME": str(folder),
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": str(folder),
        "MLFLOW_TRACKING_URI": f"file:{folder}/mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    done = subprocess.run(
        [PYTHON, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_figures_are_the_reports(report: Report) -> None:
    figures = report.figures()
    document = report.to_dict()
    assert (figures.name, figures.headline) == ("train.py", report.headline)
    assert figures.values["duration_s"] == report.duration_s
    assert figures.values["steps"] == len(report.tables["steps"]) >= 3
    assert figures.values["cpu_s"] == pytest.approx(sum(row["cpu_ns"] or 0 for row in document["processes"]) / 1e9)
    assert figures.values["steps_per_s"] > 0 and figures.values["samples_per_s"] > 0
    assert not [name for name in figures.values if name.startswith("gpu_")] or report.tables["devices"]
    assert {name.rpartition("_")[2] for name in figures.values} <= {"s", "bytes", "steps", "j"}


class Writer:
    """Has the methods of a SummaryWriter that are used."""

    def __init__(self) -> None:
        self.scalars: dict[str, tuple[float, int | None]] = {}
        self.texts: dict[str, str] = {}

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None:
        self.scalars[tag] = (scalar_value, global_step)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None) -> None:
        self.texts[tag] = text_string

    def flush(self) -> None: ...


def test_any_writer_of_scalars_and_texts_will_do(report: Report) -> None:
    writer = Writer()
    figures = report.log_to(writer, step=7)
    assert writer.scalars == {f"omni_perf/{name}": (value, 7) for name, value in figures.items()}
    assert report.headline in writer.texts["omni_perf/headline"]


def test_what_cannot_take_a_report_is_named(report: Report) -> None:
    with pytest.raises(SinkError, match='cannot be logged to dict: name "wandb", "mlflow"'):
        report.log_to({})

    class Broken(Writer):
        def flush(self) -> None:
            raise OSError("the disk is full")

    with pytest.raises(SinkError, match="TensorBoard did not take the report: OSError: the disk is full"):
        report.log_to(Broken())


@pytest.mark.parametrize(
    ("target", "package"), [("wandb", "wandb"), ("mlflow", "mlflow"), ("runs/today", "tensorboardX")]
)
def test_a_missing_package_is_one_sentence(
    report: Report, monkeypatch: pytest.MonkeyPatch, target: str, package: str
) -> None:
    for module in ("wandb", "mlflow", "tensorboardX", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SinkError, match=f"%pip install {package}$"):
        report.log_to(target)


def test_mlflow_has_the_figures_the_headline_and_the_page(saved: Path, tmp_path: Path) -> None:
    found = with_packages(
        """
import mlflow
with mlflow.start_run() as run:
    logged = report.log_to(mlflow, step=3)
    report.log_to("mlflow")
kept = mlflow.get_run(run.info.run_id)
client = mlflow.MlflowClient()
page = client.list_artifacts(run.info.run_id, "omni_perf")[0].path
steps = [point.step for point in client.get_metric_history(run.info.run_id, "omni_perf/duration_s")]
text = open(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=page)).read()
found = [logged, kept.data.metrics, kept.data.tags["omni_perf.headline"], page, steps, text[:15], report.headline]
""",
        saved,
        tmp_path,
    )
    logged, metrics, headline, page, steps, text, want = found
    assert metrics == {f"omni_perf/{name}": pytest.approx(value) for name, value in logged.items()}
    assert (headline, page, text.lower()) == (want, "omni_perf/train.py.html", "<!doctype html>")
    assert sorted(steps) == [0, 3]


def test_wandb_has_the_figures_the_headline_and_the_page(saved: Path, tmp_path: Path) -> None:
    found = with_packages(
        """
import wandb
from omni_perf.sinks import SinkError
try:
    report.log_to("wandb")
    without = ""
except SinkError as error:
    without = str(error)
with wandb.init(project="omni-perf-tests") as run:
    logged = report.log_to(run)
    report.log_to("wandb")
    summary = {name: run.summary[name] for name in run.summary.keys() if name.startswith("omni_perf/")}
    folder = run.dir
found = [logged, {k: v for k, v in summary.items() if isinstance(v, (float, int, str))}, without, folder, report.headline]
""",
        saved,
        tmp_path,
    )
    logged, summary, without, folder, headline = found
    assert without == "W&B has no active run here: call wandb.init() first, or hand over its run."
    assert {name: summary[f"omni_perf/{name}"] for name in logged} == pytest.approx(logged)
    assert (summary["omni_perf/headline"], summary["omni_perf/name"]) == (headline, "train.py")
    pages = list((Path(folder) / "media" / "html" / "omni_perf").glob("page_*.html"))
    assert pages and pages[0].read_text().lower().startswith("<!doctype html>")


def test_tensorboard_has_the_figures_the_headline_and_the_page(saved: Path, tmp_path: Path) -> None:
    found = with_packages(
        """
import tensorboardX, sys
logged = report.log_to("runs/one", step=5)
with tensorboardX.SummaryWriter("runs/two") as writer:
    report.log_to(writer)
from tensorboardX.proto.event_pb2 import Event
import glob, struct
def events(folder):
    content, at = open(glob.glob(folder + "/events.*")[0], "rb").read(), 0
    while at < len(content):
        length = struct.unpack_from("<Q", content, at)[0]
        yield Event.FromString(content[at + 12 : at + 12 + length])
        at += 12 + length + 4
scalars, texts = {}, []
for event in events("runs/one"):
    for value in event.summary.value:
        if value.HasField("simple_value"):
            scalars[value.tag] = [value.simple_value, event.step]
        else:
            texts.append(value.tensor.string_val[0].decode())
found = [logged, scalars, texts, glob.glob("runs/*/*.html"), "torch" in sys.modules, report.headline]
""",
        saved,
        tmp_path,
    )
    logged, scalars, texts, pages, torch, headline = found
    assert scalars == {f"omni_perf/{name}": [pytest.approx(value, rel=1e-6), 5] for name, value in logged.items()}
    assert len(texts) == 1 and headline in texts[0] and "runs/one/train.py.html" in texts[0]
    assert sorted(pages) == ["runs/one/train.py.html", "runs/two/train.py.html"] and not torch


def test_opentelemetrys_own_types_read_our_profiles(saved: Path, tmp_path: Path) -> None:
    done = program.run(["export", str(saved), "-o", str(tmp_path / "train.otlp.pb")])
    assert done.returncode == 0, done.stderr
    found = with_packages(
        f"""
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
data = ExportProfilesServiceRequest.FromString(open({str(tmp_path / "train.otlp.pb")!r}, "rb").read())
names = data.dictionary.string_table
profiles = data.resource_profiles[0].scope_profiles[0].profiles
leaves = set()
for sample in profiles[0].samples:
    leaf = data.dictionary.location_table[data.dictionary.stack_table[sample.stack_index].location_indices[0]]
    leaves.add(names[data.dictionary.function_table[leaf.lines[0].function_index].name_strindex])
found = [
    {{a.key: a.value.string_value or a.value.int_value for a in data.resource_profiles[0].resource.attributes}},
    [names[profile.sample_type.type_strindex] for profile in profiles],
    [sum(sample.values[0] for sample in profile.samples) / 1e9 for profile in profiles],
    sorted(leaves),
]
""",
        saved,
        tmp_path,
    )
    resource, kinds, (wall, cpu), leaves = found
    report = omni_perf.read(saved)
    assert resource["service.name"] == "train.py" and resource["process.pid"] == report.tables["processes"][0]["pid"]
    assert kinds == ["wall", "cpu"] and 0 < cpu <= wall
    assert any("work" in leaf for leaf in leaves)
