"""Which text the user's modules were loaded from."""

import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FakeSidecar, Notebook
from omni_perf.loads import Loads

pytestmark = pytest.mark.timed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("loads_")]:
        del sys.modules[name]


def module(folder: Path, name: str, text: str = "x = 1\n", age_s: float = 0) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text)
    at = time.time() - age_s
    os.utime(path, (at, at))
    importlib.invalidate_caches()
    return path


def noted(loads: Loads, since_ns: int = 0) -> dict[str, int]:
    loads.look(since_ns or time.time_ns())
    return {Path(load.get("file", "")).stem: int(load.get("modifiedNs", "")) for load in loads.unknown_to({})}


def test_a_module_that_is_imported_is_noted_with_its_time(folder: Path) -> None:
    loads = Loads()
    path = module(folder, "loads_a")
    assert noted(loads) == {}
    importlib.import_module("loads_a")
    assert noted(loads) == {"loads_a": path.stat().st_mtime_ns}


def test_an_edit_is_noted_only_after_a_reload(folder: Path) -> None:
    loads = Loads()
    first = module(folder, "loads_b", age_s=60).stat().st_mtime_ns
    loaded = importlib.import_module("loads_b")
    loads.look(time.time_ns())
    second = module(folder, "loads_b", "x = 2\n").stat().st_mtime_ns
    assert noted(loads) == {"loads_b": first}
    importlib.reload(loaded)
    assert noted(loads) == {"loads_b": second}
    third = module(folder, "loads_b", "x = 3\n", age_s=5).stat().st_mtime_ns
    del sys.modules["loads_b"]
    importlib.import_module("loads_b")
    assert noted(loads) == {"loads_b": third}


def test_nothing_is_noted_of_a_text_that_was_written_while_the_cell_ran(folder: Path) -> None:
    """It may have been loaded before."""
    loads = Loads()
    module(folder, "loads_e", age_s=60)
    loaded = importlib.import_module("loads_e")
    first = noted(loads)
    since_ns = time.time_ns() - 10**9
    importlib.reload(loaded)
    path = module(folder, "loads_e", "x = 2\n")
    assert noted(loads, since_ns) == {}
    # What was noted before is taken back.
    assert [load.get("modifiedNs") for load in loads.unknown_to({str(path): first["loads_e"]})] == ["0"]


def test_what_was_there_before_is_not_noted(folder: Path) -> None:
    module(folder, "loads_c")
    importlib.import_module("loads_c")
    assert noted(Loads()) == {}


def test_libraries_are_not_noted(folder: Path) -> None:
    loads = Loads()
    for name in ("colorsys", "this_is_no_module", "xml.dom.minidom"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    assert noted(loads) == {}


def test_only_what_is_new_is_sent(notebook: Notebook, fake: FakeSidecar, folder: Path) -> None:
    module(folder, "loads_d")
    notebook.run("%%omni_perf --quiet\nimport loads_d")
    notebook.run("%%omni_perf --quiet\nloads_d.x")
    sent = [[Path(load["file"]).stem for load in call.get("loaded", [])] for call in fake.calls("End")]
    assert sent == [["loads_d"], []]


def test_modules_that_are_no_modules_do_no_harm() -> None:
    loads = Loads()
    sys.modules["loads_odd"] = None  # type: ignore[assignment]
    sys.modules["loads_odder"] = 5  # type: ignore[assignment]
    try:
        assert noted(loads) == {}
    finally:
        del sys.modules["loads_odd"], sys.modules["loads_odder"]


def test_a_look_costs_next_to_nothing() -> None:
    """Ten times what it may cost: it is on the way of every cell."""
    loads = Loads()
    loads.look(time.time_ns())
    start = time.perf_counter()
    for _ in range(1_000):
        loads.look(time.time_ns())
    assert (time.perf_counter() - start) / 1_000 < 200e-6
