"""`omni-perf run` finds the steps of a program that imports torch, and leaves it as it is otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from requirement import program as built

TORCH = {
    "torch/__init__.py": "from torch.optim import optimizer\nimport torch.nn\n",
    "torch/nn.py": "",
    "torch/optim/__init__.py": "",
    "torch/optim/optimizer.py": """
hooks = []

class Handle:
    def __init__(self, hook): self.hook = hook
    def remove(self): hooks.remove(self.hook)

def register_optimizer_step_post_hook(hook):
    hooks.append(hook)
    return Handle(hook)

class Optimizer:
    def step(self):
        for hook in hooks:
            hook(self, (), {})
""",
}
"""What a program and the hook see of torch."""

TRAINING = """
import time
from torch.optim.optimizer import Optimizer, hooks
optimizer = Optimizer()
for _ in range(12):
    time.sleep(0.002)
    optimizer.step()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with that torch."""
    for name, text in TORCH.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(place: Path, program: str, *options: str, python: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    """Run a program under omni-perf; return its report, and what it printed."""
    binary = built()
    (place / "train.py").write_text(program)
    done = subprocess.run(
        [binary, "run", "--interpreter", sys.executable, "-o", place / "report.json", *options, *python, "train.py"],
        cwd=place, env=os.environ | {"PYTHONPATH": str(place / "site")}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((place / "report.json").read_text()), done.stdout


def steps(report: dict[str, Any]) -> list[tuple[str, int]]:
    """Return how many steps there are of each process, and how they were found."""
    found = [(step["source"], step.get("process")) for step in report["steps"]]
    return [(source, found.count((source, process))) for source, process in dict.fromkeys(found)]


def test_a_plain_loop_has_its_steps(place: Path) -> None:
    report, _ = run(place, TRAINING)
    assert steps(report) == [("optimizer", 11)]  # the first ends what was set up


def test_a_child_has_its_steps(place: Path) -> None:
    (place / "child.py").write_text(TRAINING)
    report, _ = run(place, "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n")
    assert steps(report) == [("optimizer", 11)]


def test_an_option_leaves_the_hook_out(place: Path) -> None:
    report, printed = run(place, TRAINING + "print(hooks)\n", "--no-step-hook")
    assert (steps(report), printed) == ([], "[]\n")


def test_a_program_that_imports_omni_perf_has_one_hook(place: Path) -> None:
    (place / "site" / "omni_perf").symlink_to(Path(__file__).parents[1] / "omni_perf")
    for program in ("import omni_perf\n" + TRAINING, TRAINING.replace("hooks", "hooks\nimport omni_perf", 1)):
        report, printed = run(place, program + "print(len(hooks))\n")
        assert (steps(report), printed) == ([("optimizer", 11)], "1\n")


STATE = """
import json, os, sys
started = sorted(sys.modules)
print(json.dumps({
    "path": sys.path, "meta_path": [str(type(f).__name__) + str(getattr(f, "__name__", "")) for f in sys.meta_path],
    "cached": sorted(sys.path_importer_cache), "hooks": [h.__qualname__ for h in sys.path_hooks], "flags": str(sys.flags), "warnings": sys.warnoptions,
    "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None), "modules": started,
    "environment": {k: v for k, v in os.environ.items() if k not in ("_", "SHLVL")},
}))
"""


@pytest.mark.parametrize("customized", [False, True])
def test_what_the_program_sees_is_as_it_would_be(place: Path, customized: bool) -> None:
    if customized:
        (place / "site" / "sitecustomize.py").write_text("import sys\nsys.path.append('/customized')\n")
    _, printed = run(place, STATE)
    environment = os.environ | {"PYTHONPATH": str(place / "site")}
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    here, there = json.loads(printed), json.loads(alone.stdout)
    assert here["meta_path"][:2] == ["AfterImport", "TorchWatcher"]
    here["meta_path"] = here["meta_path"][2:]
    added = set(here.pop("modules")) - set(there.pop("modules"))
    assert added == {"__future__", "atexit", "_omni_perf", "_omni_perf.placed", "_omni_perf.torchwatch"}
    ours, _, rest = here["environment"].pop("PYTHONPATH").partition(os.pathsep)
    assert ours.endswith("/omni_perf.zip")
    assert rest == there["environment"].pop("PYTHONPATH")
    assert here["environment"].pop("OMNI_PERF_RUN") == ours.replace("omni_perf.zip", "s")
    here["cached"] = [path for path in here["cached"] if not path.startswith(ours + "/")]  # of our package itself
    assert here == there
    if customized:
        assert here["sitecustomize"] == str(place / "site" / "sitecustomize.py")


def test_a_failing_sitecustomize_is_reported_as_without_us(place: Path) -> None:
    (place / "site" / "sitecustomize.py").write_text("import there_is_no_such_module\n")
    report, _ = run(place, TRAINING)
    assert steps(report) == [("optimizer", 11)]


def test_an_isolated_python_is_left_alone(place: Path) -> None:
    report, printed = run(place, "import sys\nprint(type(sys.meta_path[0]).__name__)\n", python=("-I",))
    assert steps(report) == []
    assert "TorchWatcher" not in printed
