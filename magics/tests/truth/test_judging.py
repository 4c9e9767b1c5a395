"""The rule by which a profile is right."""

from __future__ import annotations

import random

import pytest

from truth.judging import Comparison, chi_square, sampling_bound


def test_the_quantile_is_that_of_the_tables() -> None:
    """Abramowitz and Stegun, table 26.8, for 99.9 %."""
    for freedom, want in ((1, 10.828), (4, 18.467), (10, 29.588), (30, 59.703), (100, 149.449)):
        assert chi_square(freedom) == pytest.approx(want, rel=0.05)


def test_sampling_alone_stays_within_the_bound() -> None:
    chance = random.Random(1)
    shares = [0.4, 0.3, 0.2, 0.05, 0.03, 0.02]
    beyond = 0
    for _ in range(1_000):
        drawn = chance.choices(range(len(shares)), shares, k=400)
        variation = sum(abs(drawn.count(i) / 400 - share) for i, share in enumerate(shares)) / 2
        beyond += variation > sampling_bound(len(shares), 400)
    assert beyond <= 3


def test_time_of_a_wrong_line_is_seen() -> None:
    truth = {("#1", 1): 0.1, ("#1", 2): 0.2, ("#1", 3): 0.6}
    right = Comparison()
    right.add(truth, {("#1", 1): 0.11, ("#1", 2): 0.19, ("#1", 3): 0.6}, 0.9, 900)
    assert right.variation == pytest.approx(0.01 / 0.9)
    assert right.right
    wrong = Comparison()
    wrong.add(truth, {("#1", 1): 0.9}, 0.9, 900)
    assert not wrong.right
    foreign = Comparison()
    foreign.add(truth, {**truth, ("#1", 3): 0.585, ("#9", 7): 0.015}, 0.9, 900)
    assert foreign.variation < foreign.bound
    assert foreign.foreign == (pytest.approx(0.0167, rel=0.01), ("#9", 7))
    assert not foreign.right


def test_time_of_no_line_counts() -> None:
    lost = Comparison()
    lost.add({("#1", 1): 0.5, ("#1", 2): 0.4}, {("#1", 1): 0.5}, 1.0, 10_000)
    assert lost.variation == pytest.approx(0.4)
