"""Holds a profile's seconds per line against the truth.

Of n samples over k lines, Pearson's statistic χ² = n Σ (q − p)²/p is below its quantile with the
quantile's probability, and by Cauchy and Schwarz ½ Σ |q − p| ≤ ½ √(χ²/n): the total variation that
sampling alone explains. Each case may have 3 % of its time beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from truth.marking import Place

TOLERANCE = 0.03
FOREIGN = 0.01
"""Share of the time that a line may have which never ran."""

NORMAL_QUANTILE = 3.0902
"""Of 99.9 %."""


def chi_square(freedom: int) -> float:
    """Return the 99.9 % quantile, by Wilson and Hilferty's approximation (1931)."""
    if freedom < 1:
        return 0.0
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + NORMAL_QUANTILE * math.sqrt(spread)) ** 3


def sampling_bound(lines: int, samples: int) -> float:
    """Return the total variation that 99.9 % of samplings stay below."""
    return 0.5 * math.sqrt(chi_square(lines - 1) / max(samples, 1))


@dataclass
class Comparison:
    """Truth and profile of one cell, summed over its repetitions."""

    truth: dict[Place, float] = field(default_factory=dict[Place, float])
    profile: dict[Place, float] = field(default_factory=dict[Place, float])
    duration: float = 0.0
    samples: int = 0
    repetitions: int = 0

    def add(self, truth: dict[Place, float], profile: dict[Place, float], duration: float, samples: int) -> None:
        """Add a repetition. What remains of the duration belongs to no line on either side."""
        for total, seconds in ((self.truth, truth), (self.profile, profile)):
            for place, value in seconds.items():
                if place[1]:
                    total[place] = total.get(place, 0.0) + value
            rest = duration - sum(value for place, value in seconds.items() if place[1])
            total["", 0] = total.get(("", 0), 0.0) + rest
        self.duration += duration
        self.samples += samples
        self.repetitions += 1

    @property
    def variation(self) -> float:
        """The total variation, as a share of the time."""
        places = {*self.truth, *self.profile}
        apart = sum(abs(self.truth.get(place, 0.0) - self.profile.get(place, 0.0)) for place in places)
        return apart / 2 / self.duration

    @property
    def bound(self) -> float:
        """What the variation may be."""
        return TOLERANCE + sampling_bound(len(self.truth), self.samples)

    @property
    def foreign(self) -> tuple[float, Place]:
        """The largest share of a line that never ran, and the line."""
        shares = [(value / self.duration, place) for place, value in self.profile.items() if place not in self.truth]
        return max(shares, default=(0.0, ("", 0)))

    @property
    def right(self) -> bool:
        return self.variation <= self.bound and self.foreign[0] <= FOREIGN

    def __str__(self) -> str:
        share, (name, line) = self.foreign
        return (
            f"variation {self.variation:6.2%} of at most {self.bound:6.2%} "
            f"({len(self.truth)} lines, {self.samples} samples, {self.duration:.1f} s)"
            + (f"; {name}:{line} never ran and has {share:.2%}" if share > FOREIGN else "")
        )

    def table(self) -> str:
        """The lines, by how far truth and profile are apart."""
        places = sorted(
            {*self.truth, *self.profile},
            key=lambda place: -abs(self.truth.get(place, 0.0) - self.profile.get(place, 0.0)),
        )
        rows = [
            f"    {name or 'no line':>12}:{line:<5} ran {self.truth.get((name, line), 0.0):8.3f} s"
            f"   profile {self.profile.get((name, line), 0.0):8.3f} s"
            for name, line in places[:12]
        ]
        return "\n".join(rows)
