"""Results that outlive the run that measured them."""

from __future__ import annotations

from pathlib import Path

from truth.judging import Comparison
from truth.kept import Kept


def test_a_run_goes_on_where_another_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "3.12.json"
    first = Kept(path, "a build")
    first.results["a loop"] = Comparison()
    first.results["a loop"].add({("#1", 2): 0.75}, {("#1", 2): 0.5, ("#1", 3): 0.25}, 1.0, 1000)
    first.count()
    first.results["a loop"].add({("#1", 2): 0.75}, {("#1", 2): 0.75}, 1.0, 900)
    first.count()
    first.results["a loop"].add({("#1", 2): 0.75}, {("#1", 2): 0.75}, 1.0, 8100)
    first.keep()  # until it has its samples: no repetition of all
    then = Kept(path, "a build")
    assert (then.repetitions, then.results) == (2, first.results)
    assert str(then.results["a loop"]) == str(first.results["a loop"])


def test_another_build_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "3.12.json"
    Kept(path, "a build").count()
    then = Kept(path, "another")
    assert (then.repetitions, then.results) == (0, {})
