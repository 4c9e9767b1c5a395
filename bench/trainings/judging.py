"""How far a report is from what the processes of a training knew of themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cases import Case, Facts, Report

STEPS, SAMPLES, PHASES, EXTRA, LOADING = 0.02, 0.02, 0.03, 0.05, 0.5
"""At most: of steps' number and mean, of samples per second, of the training's time that a phase is off, and of a
straggler's seconds; and from which share of the training's time on loading data has a sentence."""


@dataclass
class Verdict:
    """What was compared, as a row of the table, and what is wrong."""

    case: str
    headline: str = ""
    steps: str = "–"
    pace: str = "–"
    samples: str = "–"
    phases: str = "–"
    within: str = "–"
    unknown: str = "–"
    extra: str = "–"
    wrong: list[str] = field(default_factory=list[str])

    def row(self) -> list[str]:
        """Return its columns."""
        return [
            self.case,
            self.steps,
            self.pace,
            self.samples,
            self.phases,
            self.within,
            self.unknown,
            self.extra,
            "; ".join(self.wrong) or "right",
            self.headline,
        ]


def judge(case: Case, code: int, report: Report, facts: dict[int, Facts]) -> Verdict:
    """Compare a report with each rank's own clock."""
    verdict = Verdict(case.name, report["headline"]["text"])
    if code != case.code:
        verdict.wrong.append(f"exit code {code}, not {case.code}")
    if problem := case.expects(report):
        verdict.wrong.append(problem)
    ranks: list[Facts] = report.get("ranks") or []
    processes: dict[int, int] = {row["rank"]: row["process"] for row in ranks}
    program = report["subject"]["process"]
    for rank, own in sorted(facts.items()):
        process = processes.get(rank) if len(facts) > 1 else program
        if process is None:
            verdict.wrong.append(f"rank {rank} is not known")
            continue
        _steps(verdict, report, process, own)
        _samples(verdict, report, process, own)
        _phases(verdict, report, process, own)
    if case.slow is not None:
        _straggler(verdict, report, case.slow, facts)
    return verdict


def _steps(verdict: Verdict, report: Report, process: int, own: Facts) -> None:
    ours = [step for step in report["steps"] if step.get("process", 0) == process]
    ends = own["ends"]
    if not ours:
        if not any("step" in note["text"] for note in report["notes"]):
            verdict.wrong.append("no steps, and no note says why")
        return
    # A step is from one end to the next, so there is one less.
    mean, own_mean = (
        (ours[-1]["end_ns"] - ours[0]["start_ns"]) / len(ours) / 1e9,
        (ends[-1] - ends[0]) / (len(ends) - 1),
    )
    verdict.steps = f"{len(ours)}/{len(ends) - 1}"
    verdict.pace = f"{mean / own_mean:.3f}"
    if abs(len(ours) - (len(ends) - 1)) > STEPS * len(ends):
        verdict.wrong.append(f"{len(ours)} steps of {len(ends) - 1}")
    if abs(mean / own_mean - 1) > STEPS:
        verdict.wrong.append(f"step {mean:.4f} s, own {own_mean:.4f} s")


def _samples(verdict: Verdict, report: Report, process: int, own: Facts) -> None:
    """Compare samples per second and the steps of each epoch."""
    if not any(own["samples"]):
        return
    ours = [step for step in report["steps"] if step.get("process", 0) == process]
    known = [step for step in ours if step.get("samples")]
    seconds = sum(step["end_ns"] - step["start_ns"] for step in known) / 1e9
    pace = sum(step["samples"] for step in known) / seconds if known else 0.0
    of = [
        i + 1 for i, step in enumerate(ours) if step.get("samples") and i + 1 < len(own["ends"])
    ]  # the hook's first step is set-up
    own_pace = sum(own["samples"][i] for i in of) / max(sum(own["ends"][i] - own["ends"][i - 1] for i in of), 1e-9)
    verdict.samples = f"{pace / own_pace:.3f}"
    if abs(pace / own_pace - 1) > SAMPLES:
        verdict.wrong.append(f"{pace:.1f} samples/s, own {own_pace:.1f}")
    epochs = Counter(step["epoch"] for step in ours)
    own_epochs: Counter[int] = Counter(own["epochs"][1:])
    if epochs != own_epochs:
        verdict.wrong.append(f"steps of epochs {dict(epochs)}, own {dict(own_epochs)}")


def _phases(verdict: Verdict, report: Report, process: int, own: Facts) -> None:
    """Compare each phase, as far as the stacks are known: where the sampler had no CPU the report says so."""
    sums: dict[str, float] = {}
    phases: list[Facts] = report.get("training_phases") or []
    for phase in phases:
        if phase.get("process", 0) == process and phase["epoch"] is None:
            sums[phase["id"]] = phase["total_ns"] / 1e9
    timed = {name: seconds for name, seconds in own["phases"].items() if name != "extra"}  # no phase of its own
    if not timed:
        return
    time = sum(own["phases"].values())
    unknown = unread(report, process, own)
    # Of a short training the report says itself to how much its phases are known.
    said_within = [note["args"]["within"] for note in report["notes"] if note["id"] == "phases-within"]
    within = max([PHASES, *said_within])
    worst, at = -1.0, ""
    for name, seconds in timed.items():
        off, said = abs(sums.get(name, 0.0) - seconds), f"{name} {sums.get(name, 0.0):.2f} s, own {seconds:.2f} s"
        if off / time > worst:
            worst, at = off / time, said
        if off > within * time + unknown:
            verdict.wrong.append(f"{said} of {time:.2f} s")
    verdict.phases, verdict.unknown = f"{100 * worst:.1f} % ({at})", f"{unknown:.2f} s"
    verdict.within = f"{100 * within:.1f} %"
    said = " ".join(finding["text"] for finding in report["findings"])
    if timed.get("data", 0.0) > LOADING * time and "data" not in said:
        verdict.wrong.append(f"no sentence says that loading took {100 * timed['data'] / time:.0f} % of the training")


def unread(report: Report, process: int, own: Facts) -> float:
    """Return for how many seconds of a process's phases its stacks are not known."""
    steps = [step for step in report["steps"] if step.get("process", 0) == process]
    begin, end = (steps[0]["start_ns"], steps[-1]["end_ns"]) if steps else (0, report["duration_ns"])
    if steps:  # the first is from the first end on
        begin -= int((own["ends"][0] - own["began"]) * 1e9)
    gaps = [(gap["start_ns"], gap["end_ns"]) for gap in report["gaps"] if gap["process"] == process]
    return sum(max(0, min(to, end) - max(at, begin)) for at, to in gaps) / 1e9


def _straggler(verdict: Verdict, report: Report, slow: int, facts: dict[int, Facts]) -> None:
    found = next((f for f in report["findings"] if f["id"] == "straggler"), None)
    if found is None or found["args"]["rank"] != slow:
        verdict.wrong.append(f"rank {slow} is not said to be slow")
        return
    others = [own for rank, own in facts.items() if rank != slow]
    extra = facts[slow]["phases"]["extra"] - sum(own["phases"]["extra"] for own in others) / len(others)
    steps = len(facts[slow]["ends"])
    extra *= (steps - 1) / steps  # a step is from one end to the next: the first is none
    ours = found["args"]["place_ns"] / 1e9
    verdict.extra = f"{ours:.2f}/{extra:.2f} s"
    if abs(ours / extra - 1) > EXTRA:
        verdict.wrong.append(f"{ours:.2f} s longer, own {extra:.2f} s")
