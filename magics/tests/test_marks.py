import time
from collections.abc import Iterator

import omni_perf
import pytest
from omni_perf import marks, torchsteps


@pytest.fixture(autouse=True)
def empty_rings() -> Iterator[None]:
    marks._steps.clear()
    marks._regions.clear()
    yield
    marks._steps.clear()
    marks._regions.clear()


def test_a_step_spans_from_the_one_before() -> None:
    start = time.monotonic_ns()
    for _ in range(3):
        omni_perf.step()
    found, lost = marks.between(start, time.monotonic_ns())
    assert [mark.get("kind") for mark in found] == ["step"] * 3
    assert found[0].get("startNs") == str(start)
    assert found[1].get("startNs") == found[0].get("endNs")
    assert lost == ""


def test_only_marks_inside_the_cell_count() -> None:
    omni_perf.step()
    with omni_perf.region("before"):
        pass
    start = time.monotonic_ns()
    omni_perf.step()
    with omni_perf.region("inside"):
        pass
    end = time.monotonic_ns()
    omni_perf.step()
    found, _ = marks.between(start, end)
    assert [(mark.get("kind"), mark.get("name")) for mark in found] == [("step", None), ("region", "inside")]


def test_regions_nest_and_are_left_by_exceptions() -> None:
    start = time.monotonic_ns()
    load = omni_perf.region("load")
    with pytest.raises(ValueError, match="no"), load, load:
        raise ValueError("no")
    found, _ = marks.between(start, time.monotonic_ns())
    assert [mark.get("name") for mark in found] == ["load", "load"]
    inner, outer = found
    assert int(outer.get("startNs", 0)) <= int(inner.get("startNs", 0)) <= int(inner.get("endNs", 0))
    assert int(inner.get("endNs", 0)) <= int(outer.get("endNs", 0))


def test_a_pause_is_in_no_step_however_short_steps_are() -> None:
    """Of three steps of 0.5 ms the second ends in front of a pause, which is not the first one's, too."""
    half = 500_000
    start = time.monotonic_ns()
    ends = [start + half, start + 2 * half, start + 3 * half + 10 * half]
    marks._steps.extend(marks.StepEnd(end, by_hook=True) for end in ends)
    marks.pause(ends[1] + 1000, ends[1] + 10 * half)
    found, _ = marks.between(start, ends[-1])
    marks._pauses.clear()
    times = [(int(mark.get("startNs", 0)) - start, int(mark.get("endNs", 0)) - start) for mark in found]
    assert times == [(0, half), (half, 2 * half), (12 * half, 13 * half)]


def test_calls_of_step_win_over_the_hook() -> None:
    start = time.monotonic_ns()
    marks.step_by_hook(time.monotonic_ns())
    marks.step_by_hook(time.monotonic_ns())
    found, _ = marks.between(start, time.monotonic_ns())
    assert [mark.get("kind") for mark in found] == ["optimizer-step"] * 2
    omni_perf.step()
    assert len(marks.between(start, time.monotonic_ns())[0]) == 1


def test_the_next_optimizer_leads_when_the_leading_one_is_gone() -> None:
    """As of a training that follows another one; of two at the same time only the first counts."""

    class Optimizer:
        pass

    found: list[bool] = []
    calls: list[int] = []
    others: list[str] = []

    def stepped(at_ns: int, anew: bool, called_ns: int) -> None:
        found.append(anew)
        calls.append(called_ns)

    steps = torchsteps.OptimizerSteps(stepped, others.append)
    first, second = Optimizer(), Optimizer()
    for optimizer in (first, second, first):
        steps._stepped(optimizer, (), {})
        steps._stepped(optimizer, (), {})
    assert found == [False] * 4 and others == ["Optimizer"]
    assert calls == [0] * 4, "nobody has noted when it was called"
    before = time.monotonic_ns()
    steps._called(first, (), {})
    middle = time.monotonic_ns()
    steps._called(second, (), {})
    steps._stepped(first, (), {})
    assert before <= calls.pop() <= middle and found.pop() is False
    del first, optimizer
    steps._stepped(second, (), {})
    steps._stepped(second, (), {})
    assert found == [False, False, False, False, True, False]
    start = time.monotonic_ns()
    marks.step_by_hook(time.monotonic_ns(), True, start)
    (mark,) = marks.between(start, time.monotonic_ns())[0]
    assert (mark.get("kind"), mark.get("optimizerNs")) == ("optimizer-anew", str(start))


def test_the_next_optimizer_leads_when_the_one_before_has_finished() -> None:
    """As of trials that the program keeps, in a list say: its steps count from the first on."""

    class Optimizer:
        pass

    found: list[tuple[int, bool, int]] = []
    others: list[str] = []
    steps = torchsteps.OptimizerSteps(lambda *step: found.append(step), others.append)
    trials = [Optimizer() for _ in range(3)]
    for trial in trials:
        for _ in range(torchsteps.ALONE + 5):
            steps._called(trial, (), {})
            steps._stepped(trial, (), {})
    assert [nth for nth, (_, anew, _) in enumerate(found) if anew] == [torchsteps.ALONE + 5, 2 * torchsteps.ALONE + 10]
    assert len(found) == 3 * torchsteps.ALONE + 15
    times = [at_ns for at_ns, _, called_ns in found for at_ns in (called_ns, at_ns)]
    assert times == sorted(times) and times[0] > 0, "each has its own times"
    assert others == []


def test_models_that_are_trained_by_turns_are_set_up_once() -> None:
    """As of an ensemble: each is trained for an epoch, and then the next one."""

    class Optimizer:
        pass

    found: list[bool] = []
    steps = torchsteps.OptimizerSteps(lambda at_ns, anew, called_ns: found.append(anew), lambda _: None)
    models = [Optimizer() for _ in range(3)]
    for _ in range(4):
        for model in models:
            for _ in range(torchsteps.ALONE):
                steps._stepped(model, (), {})
    assert len(found) == 12 * torchsteps.ALONE
    assert [nth for nth, anew in enumerate(found) if anew] == [torchsteps.ALONE, 2 * torchsteps.ALONE]


@pytest.mark.parametrize("critic", [1, 5, torchsteps.ALONE - 1])
def test_optimizers_that_step_in_turn_are_one_training(critic: int) -> None:
    """As of a GAN: however often its critic steps, steps are the generator's."""

    class Generator:
        pass

    class Critic:
        pass

    found: list[int] = []
    others: list[str] = []
    steps = torchsteps.OptimizerSteps(lambda at_ns, anew, called_ns: found.append(at_ns), others.append)
    generator, other = Generator(), Critic()
    for _ in range(7):
        steps._stepped(generator, (), {})
        for _ in range(critic):
            steps._stepped(other, (), {})
    for _ in range(3 * torchsteps.ALONE):  # it is trained on, at the end
        steps._stepped(other, (), {})
    assert (len(found), others) == (7, ["Critic"])


def test_the_ring_is_bounded_and_says_so() -> None:
    start = time.monotonic_ns()
    for _ in range(marks.CAPACITY + 10):
        omni_perf.step()
    found, lost = marks.between(start, time.monotonic_ns())
    assert len(found) == marks.CAPACITY - 1  # of the oldest the beginning is not known
    assert found[0].get("startNs") != str(start)
    assert f"{marks.CAPACITY:,}" in lost


def test_a_step_says_what_it_worked_on() -> None:
    start = time.monotonic_ns()
    marks.step(samples=32, tokens=8192, epoch=0)
    marks.step()
    sent, _ = marks.between(start, time.monotonic_ns())
    batches = [{name: mark.get(name) for name in ("samples", "tokens", "epoch")} for mark in sent]
    assert batches == [
        {"samples": "32", "tokens": "8192", "epoch": 0},
        {"samples": None, "tokens": None, "epoch": None},
    ]


def test_progress_counts_steps_from_an_instant_on() -> None:
    marks.step()
    before = marks.progress()
    assert marks.progress().since(before) == {}
    marks.step_by_hook(time.monotonic_ns())
    hooked = marks.progress().since(before)
    assert hooked.get("steps") == "1" and "totalSteps" not in hooked
    marks.step()
    request = marks.progress().since(before)
    assert request.get("steps") == "1", "called steps take precedence over a hook's"
    assert int(request.get("lastStepNs", "0")) > int(hooked.get("lastStepNs", "0"))


def test_a_total_counts_from_where_it_was_given() -> None:
    before = marks.progress()
    for _ in range(3):
        marks.step()
    for _ in range(2):
        marks.step(total=10)
    request = marks.progress().since(before)
    assert (request.get("steps"), request.get("totalSteps")) == ("5", "13")
    again = marks.progress()  # the cell runs once more
    marks.step(total=10)
    assert marks.progress().since(again).get("totalSteps") == "10"
    silent = marks.progress()
    marks.step()
    assert "totalSteps" not in marks.progress().since(silent)
