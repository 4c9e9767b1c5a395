"""Hands the figures and the page of a report over to a tracker of experiments: W&B, MLflow or TensorBoard.

Nothing of these is imported before somebody names it, and nothing here opens a connection: the package that is
named does what it always does, with the user's own settings.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from omni_perf.report import Figures, Report

PREFIX = "omni_perf/"
"""What the names of figures begin with, so that trackers group them."""


class SinkError(Exception):
    """A report could not be handed over; the text is a sentence for the user."""


class Writer(Protocol):
    """The methods of a SummaryWriter that are used: torch's and tensorboardX's have them."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> object:
        """Add a figure."""
        ...

    def add_text(self, tag: str, text_string: str, global_step: int | None = None) -> object:
        """Add a text."""
        ...

    def flush(self) -> object:
        """Write what was added."""
        ...


def log(report: Report, target: object, step: int | None = None) -> dict[str, float]:
    """Hand the report over and return its figures; see Report.log_to."""
    name, send = _sink(target)
    figures = report.figures()
    with tempfile.TemporaryDirectory(prefix="omni_perf_page_") as folder:
        name_of_page = re.sub(r"[^\w.-]+", "_", report.name).strip("_.") or "report"
        page = Path(folder) / f"{name_of_page}.html"
        report.save(page)
        try:
            send(figures, page, step)
        except SinkError:
            raise
        except Exception as error:
            raise SinkError(f"{name} did not take the report: {type(error).__name__}: {error}") from error
    return dict(figures.values)


Send = Callable[["Figures", Path, int | None], None]


def _sink(target: object) -> tuple[str, Send]:
    """Return what a target is called and what sends to it."""
    package = target.__name__ if isinstance(target, ModuleType) else target
    if package == "mlflow":
        mlflow = _imported("mlflow", "MLflow")
        return "MLflow", lambda figures, page, step: _to_mlflow(mlflow, figures, page, step)
    if package == "wandb":
        wandb = _imported("wandb", "W&B")
        if wandb.run is None:
            raise SinkError("W&B has no active run here: call wandb.init() first, or hand over its run.")
        return "W&B", lambda figures, page, step: _to_wandb(wandb, wandb.run, figures, page, step)
    if type(target).__module__.partition(".")[0] == "wandb" and hasattr(target, "summary"):
        wandb = _imported("wandb", "W&B")
        return "W&B", lambda figures, page, step: _to_wandb(wandb, target, figures, page, step)
    if hasattr(target, "add_scalar") and hasattr(target, "add_text"):
        writer = cast("Writer", target)
        return "TensorBoard", lambda figures, page, step: _to_tensorboard(writer, figures, page, step)
    if isinstance(target, str | os.PathLike):
        return "TensorBoard", _log_dir(os.fspath(cast("str | os.PathLike[str]", target)))
    raise SinkError(
        f'A report cannot be logged to {type(target).__name__}: name "wandb", "mlflow" or TensorBoard\'s '
        "folder, or hand over a run of W&B, the module mlflow or a SummaryWriter."
    )


def _imported(module: str, name: str) -> Any:
    try:
        return cast("Any", import_module(module))
    except ImportError as error:
        raise SinkError(f"{name} is not installed here ({error}): %pip install {module}") from error


def _to_wandb(wandb: Any, run: Any, figures: Figures, page: Path, step: int | None) -> None:
    html = wandb.Html(page.read_text(), inject=False)
    run.log({**_named(figures.values), f"{PREFIX}page": html}, step=step)
    run.summary[f"{PREFIX}headline"] = figures.headline
    run.summary[f"{PREFIX}name"] = figures.name


def _to_mlflow(mlflow: Any, figures: Figures, page: Path, step: int | None) -> None:
    mlflow.log_metrics(_named(figures.values), step=step)
    mlflow.set_tags({"omni_perf.headline": figures.headline, "omni_perf.name": figures.name})
    mlflow.log_artifact(str(page), "omni_perf")


def _to_tensorboard(writer: Writer, figures: Figures, page: Path, step: int | None) -> None:
    for name, value in _named(figures.values).items():
        writer.add_scalar(name, value, step)
    text = f"**{figures.name}**: {figures.headline}"
    folder = getattr(writer, "log_dir", None) or getattr(writer, "logdir", None)
    if isinstance(folder, str) and os.path.isdir(folder):
        kept = Path(folder) / page.name
        kept.write_bytes(page.read_bytes())
        text += f"\n\nThe chart is the page `{kept}`."
    writer.add_text(f"{PREFIX}headline", text, step)
    writer.flush()


def _log_dir(folder: str) -> Send:
    """Return what sends to a folder of TensorBoard."""
    make = _summary_writer()

    def send(figures: Figures, page: Path, step: int | None) -> None:
        with make(folder) as writer:
            _to_tensorboard(writer, figures, page, step)

    return send


def _summary_writer() -> Any:
    """Return the SummaryWriter of whichever package is there; torch is not imported for it where another one is."""
    modules = ["tensorboardX", "torch.utils.tensorboard"]
    if "torch" in sys.modules:
        modules.reverse()
    for module in modules:
        try:
            return cast("Any", import_module(module)).SummaryWriter
        except ImportError:
            continue
    raise SinkError("TensorBoard's files can be written by neither tensorboardX nor torch: %pip install tensorboardX")


def _named(figures: Mapping[str, float]) -> dict[str, float]:
    return {PREFIX + name: value for name, value in figures.items()}
