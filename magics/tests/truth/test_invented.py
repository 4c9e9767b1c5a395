"""Invented cells are the same for the same seed, and hold all kinds of statements."""

from __future__ import annotations

from truth import invented, marking
from truth.marking import Places


def test_a_seed_makes_one_case() -> None:
    assert invented.case(7) == invented.case(7)
    assert invented.case(7).cells != invented.case(8).cells


def test_invented_cells_are_programs_that_take_marks() -> None:
    sources = [cell.source for seed in range(200) for cell in invented.case(seed).cells]
    own = marking.own_names(sources[1:2])
    assert own == {"again", "twice", "Thing", "__init__", "go", "produce"}
    for source in sources:
        body = source.removeprefix("%%omni_perf")
        compile(body, "cell", "exec")
        compile(marking.marked(body, "cell", Places(), own, ends=True), "cell", "exec")
    for word in ("for ", "while ", "with ", "try:", "if pool", "again(", "Thing(", "produce(", "Event().wait"):
        assert any(word in source.partition("%%omni_perf")[2] for source in sources), word
