"""Trainings as people write them, what each is about, and how far a report may be from the clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]
"""What one process wrote of itself: programs/clocked.py."""
Report = dict[str, Any]


@dataclass
class Case:
    """A program, how it is called, and what is expected of its report beyond its steps and phases."""

    name: str
    command: list[str]
    needs: str = "torch"
    """A module of the environment …"""
    environment: str = "torch"
    """… in .cache, which the tool of this name makes."""
    launcher: list[str] = field(default_factory=list[str])
    code: int = 0
    """Its exit code."""
    slow: int | None = None
    """The rank that is slower than the others."""
    expects: Callable[[Report], str] = lambda _: ""
    """What is wrong with the report, in words; empty if nothing is."""


def says(*parts: str) -> Callable[[Report], str]:
    """Return a check that one of the sentences has each of these."""

    def check(report: Report) -> str:
        sentences = [report["headline"]["text"], *(f["text"] for f in report["findings"])]
        lacking = [part for part in parts if not any(part in sentence for sentence in sentences)]
        return f"no sentence has {', '.join(lacking)}: {sentences[:3]}" if lacking else ""

    return check


def raised(report: Report) -> str:
    exception: Facts = report["processes"][0].get("exception") or {}
    return "" if (exception.get("type"), exception.get("line")) == ("ValueError", RAISES) else f"exception: {exception}"


RAISES = 95
"""The line of plain.py that raises."""

EVALUATIONS = {
    "comprehension": "a generator expression",
    "decorated": "a decorated function",
    "inside": "no_grad in the loop",
    "mode": "only model.eval()",
    "helper": "a function of any name",
    "one": "one function for both",
    "optional": "an optimizer or none",
}
"""The ways in which evaluations.py validates."""

TORCHRUN = ["-m", "torch.distributed.run", "--master-port", "29573"]


def cases() -> list[Case]:
    """Return all of them."""
    plain, ranks, frameworks, compiled = "plain.py", "ranks.py", "frameworks.py", "compiled.py"
    return [
        Case("plain loop, no workers", [plain, "--item", "0.002"]),
        Case("2 workers that compute", [plain, "--workers", "2", "--item", "0.002"]),
        Case("4 workers that compute", [plain, "--workers", "4", "--item", "0.002"]),
        Case("8 workers that compute", [plain, "--workers", "8", "--item", "0.002"]),
        Case("2 workers that fetch", [plain, "--workers", "2", "--fetch", "--item", "0.008"]),
        Case("4 workers that fetch", [plain, "--workers", "4", "--fetch", "--item", "0.008"]),
        Case("8 workers that fetch", [plain, "--workers", "8", "--fetch", "--item", "0.016"]),
        Case("2 spawned workers", [plain, "--workers", "2", "--spawn", "--item", "0.002"]),
        Case("4 spawned workers that fetch", [plain, "--workers", "4", "--spawn", "--fetch", "--item", "0.008"]),
        Case("gradients of 4 batches", [plain, "--accumulate", "4", "--steps", "160"]),
        Case("validation after each epoch", [plain, "--epochs", "3", "--validate", "--steps", "30"]),
        Case("training and validation by turns", ["turns.py"]),
        *(Case(f"validation: {what}", ["evaluations.py", way]) for way, what in EVALUATIONS.items()),
        Case("a checkpoint each 10 steps", [plain, "--checkpoint", "10"]),
        Case("epochs, 2 workers, validation, checkpoints",
             [plain, "--epochs", "3", "--validate", "--checkpoint", "15", "--workers", "2", "--steps", "30"]),
        Case("epochs with a short batch", [plain, "--epochs", "3", "--validate", "--steps", "30", "--short", "9"]),
        Case("epochs, 2 workers that stay, a short batch",
             [plain, "--epochs", "4", "--workers", "2", "--persistent", "--steps", "25", "--short", "9"]),
        Case("four trials that are kept", ["trials.py"]),
        Case("stops early", [plain, "--stop", "35"]),
        Case("ends by an exception", [plain, "--fail", "30"], code=1, expects=raised),
        Case("a worker is killed", [plain, "--workers", "2", "--kill"], code=1, expects=says("SIGKILL")),
        Case("2 ranks of torchrun", [ranks, "torchrun", "--steps", "400"],
             launcher=[*TORCHRUN, "--nproc-per-node", "2"]),
        Case("4 ranks of torchrun, one slow", [ranks, "torchrun", "--slow", "2"], slow=2,
             launcher=[*TORCHRUN, "--nproc-per-node", "4"]),
        Case("2 spawned ranks, one slow", [ranks, "spawn", "--slow", "1"], slow=1),
        Case("3 spawned ranks, one slow", [ranks, "spawn", "--ranks", "3", "--slow", "0"], slow=0),
        Case("notebook_launcher, 2 ranks, one slow", [ranks, "launcher", "--slow", "1"], "accelerate", slow=1),
        Case("Trainer", [frameworks, "trainer"], "transformers"),
        Case("Trainer, 2 workers", [frameworks, "trainer", "--workers", "2"], "transformers"),
        Case("Lightning", [frameworks, "lightning"], "lightning"),
        Case("Lightning, 2 workers", [frameworks, "lightning", "--workers", "2"], "lightning"),
        Case("accelerate", [frameworks, "accelerate"], "accelerate"),
        Case("accelerate, 2 workers", [frameworks, "accelerate", "--workers", "2"], "accelerate"),
        Case("JAX, Flax linen", [compiled, "linen"], "flax", "jax"),
        Case("JAX, Flax NNX", [compiled, "nnx"], "flax", "jax"),
        Case("Keras on JAX", [compiled, "keras"], "keras", "jax"),
    ]  # fmt: skip
