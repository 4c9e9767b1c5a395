"""The comparison that the tests with a real GPU make, tried where the truth is known."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from .compare import SYNCHRONISATION, Comparison, compare
from .runs import recorded

Run = dict[str, Any]


@pytest.mark.parametrize("variant", ["starved", "fixed", "item"])
def test_a_simulated_training_agrees_with_its_trace(
    variant: str, program: Path, simulated_gpu: dict[str, str], tmp_path: Path
) -> None:
    run = recorded(program, tmp_path, "train_simulated.py", variant, environment=simulated_gpu)
    made = compare(*run)
    print(made)
    assert made.problems == []
    assert made.trace_loading_s is None or variant == "starved"
    busy, _ = made.trace_busy_s
    assert {"starved": 0.3, "fixed": 0.8, "item": 0.5}[variant] < busy / made.training_s < 1


def cause(kind: str, line: int, seconds: float, text: str, **more: Any) -> Run:
    return {"id": kind, "file": "~/programs/train.py", "line": line, "seconds": seconds, "source_text": text, **more}


def training(variant: str = "starved") -> Run:
    """Ten seconds of training, 6 s of them idle, from second 5 of a recording of 20 s on."""
    causes = {
        "starved": [cause("data-loading-here", 12, 5.5, "time.sleep(STORAGE_S)"), cause("python", 22, 0.5, "x")],
        "item": [
            cause(SYNCHRONISATION, 24, 5.0, "right += hits[n].item()", hint="move .item() out of the loop"),
            cause("data-loading-here", 20, 1.0, "for"),
        ],
        "fixed": [cause("python", 22, 5.5, "x"), cause("data-loading-here", 20, 0.5, "for")],
    }[variant]
    causes.append(cause("set-up", 70, 10, "main()"))
    idle = 16.0
    times = [round(0.1 * n, 1) for n in range(1, 201)]
    report = {
        "started_at": "2026-01-01T00:00:00Z",
        "duration_s": 20.0,
        "gpus": [
            {"index": 0, "name": "Idle", "used": False, "busy_s": 0.0, "idle_s": 20.0, "unknown_s": 0.0},
            {
                "index": 1,
                "name": "Trainer",
                "used": True,
                "busy_s": 4.0,
                "idle_s": idle,
                "unknown_s": 0.0,
                "source": "GPM",
                "resolution_s": 0.1,
            },
        ],
        "idle": {
            "gpu_idle_s": idle,
            "causes": causes,
            "devices": [{"device": 1, "idle_s": idle, "certainty": "resolved", "causes": causes}],
        },
        "tracks": [
            {"id": "gpu1.util", "t_s": times, "value": [40.0 if 5 < t <= 15 else 0.0 for t in times]},
            {"id": "gpu1.mem", "t_s": [1.0], "value": [1e9]},
            {"id": "gpu1.mem.self", "t_s": [1.0], "value": [1e9]},
        ],
        "notes": [],
    }
    row = {"idle_time_us": 5.9e6, "kernel_time_us": 9.9e6, "compute_time_us": 3.9e6}
    analysis = {
        "temporal_breakdown": [row],
        "idle_time_breakdown": [
            {"idle_category": "kernel_wait", "idle_time_us": 0.1e6},
            {"idle_category": "host_wait", "idle_time_us": 5.8e6},
        ],
        "dataloader": [{"device_idle_us": 5.4e6}] if variant == "starved" else [],
    }
    start = 1767225600.0  # 2026 began
    facts = {"variant": variant, "began": start + 5, "ended": start + 15, "rest_s": 2.0, "lines": [10, 30]}
    return {"report": report, "analysis": analysis, "facts": facts}


def compared(run: Run) -> Comparison:
    return compare(run["report"], run["analysis"], run["facts"])


def problem(run: Run) -> str:
    (found,) = compared(run).problems
    return found


@pytest.mark.parametrize("variant", ["starved", "fixed", "item"])
def test_what_agrees_has_no_problem(variant: str) -> None:
    made = compared(training(variant))
    assert made.problems == []
    assert made.training_s == pytest.approx(10)
    assert made.lane_busy_s == pytest.approx(4)
    assert made.lane_unknown_s == pytest.approx(0)
    assert made.trace_busy_s == pytest.approx((3.9, 4.1))
    assert made.charged_s == pytest.approx((6, 6)), "set-up is not the training's"
    assert made.gpu == "Trainer"
    assert "GPM every 100 ms" in str(made)


@pytest.mark.parametrize(("share", "fits"), [(36.5, True), (34, False), (44.4, True), (46, False)])
def test_the_lane_may_differ_by_rounding_and_two_windows(share: float, fits: bool) -> None:
    """3.9 to 4.1 s by the trace; 0.2 s for rounding and 0.2 s for the edges are borne."""
    run = training()
    util = run["report"]["tracks"][0]
    util["value"] = [share if value else 0.0 for value in util["value"]]
    problems = compared(run).problems
    assert (problems == []) == fits, problems
    assert fits or "the lane was busy for" in problems[0]


def test_a_coarser_lane_may_differ_by_more() -> None:
    run = training()
    run["report"]["gpus"][1]["resolution_s"] = 0.5
    util = run["report"]["tracks"][0]
    util["value"] = [46.0 if value else 0.0 for value in util["value"]]
    assert compared(run).problems == []


def test_what_the_lane_does_not_know_is_no_disagreement_but_not_for_long() -> None:
    run = training()
    util = run["report"]["tracks"][0]
    known = copy.deepcopy(util["value"])
    util["value"][100:110] = [None] * 10
    assert compared(run).problems == []
    util["value"] = known
    util["value"][100:125] = [None] * 25
    assert problem(run).startswith("the lane knows nothing of 2.5 s")


def test_causes_that_do_not_add_up() -> None:
    run = training()
    run["report"]["idle"]["gpu_idle_s"] += 0.01
    assert problem(run).startswith("all devices: the causes add up to")


def test_parts_that_are_not_the_duration() -> None:
    run = training()
    run["report"]["gpus"][0]["unknown_s"] = 1.0
    assert problem(run) == "GPU 0: busy + idle + unknown is 21.0 s of 20.0 s"


def test_a_missing_lane() -> None:
    run = training()
    run["report"]["tracks"][1]["value"] = [None]
    assert problem(run) == "the lane gpu1.mem is empty"
    run = training()
    run["report"]["tracks"][2]["value"] = []
    assert problem(run) == "the lane gpu1.mem.self is empty"
    run["report"]["notes"] = [{"what": "gpu1.mem.self", "reason": "none of the 2 processes is the program's"}]
    assert compared(run).problems == []
    del run["report"]["tracks"][0]
    assert "the lane gpu1.util is empty" in compared(run).problems


def test_idle_time_charged_to_other_lines() -> None:
    run = training("item")
    charged = run["report"]["idle"]["devices"][0]["causes"][1]
    charged["line"] = 71
    assert compared(run).problems[0].startswith("5.00 to 5.00 s of idle time are charged to the loop")
    charged["file"] = ""  # summed with other small ones: it may be the loop's
    assert compared(run).problems == []


def test_idle_time_whose_bounds_hold_the_truth() -> None:
    run = training("item")
    charged = run["report"]["idle"]["devices"][0]["causes"][0]
    charged["seconds"] = 3.0
    run["report"]["idle"]["gpu_idle_s"] -= 2
    run["report"]["idle"]["devices"][0]["idle_s"] -= 2
    assert "charged to the loop" in problem(run)
    charged["low_s"], charged["high_s"] = 2.0, 5.0
    assert compared(run).problems == []


def test_too_little_for_the_loader() -> None:
    run = training()
    first, second = run["report"]["idle"]["devices"][0]["causes"][:2]
    first["seconds"], second["seconds"] = 4.0, 2.0
    assert problem(run).startswith(
        "4.00 to 4.00 s of idle time are charged to data loading, by the trace they are 5.40"
    )


@pytest.mark.parametrize(
    ("variant", "found"),
    [
        ("starved", "the top cause is 'python"),
        ("item", "the top line is 'for', want"),
        ("fixed", "whose workers keep up"),
    ],
)
def test_another_cause_than_the_variant_has(variant: str, found: str) -> None:
    run = training(variant)
    first, second = run["report"]["idle"]["devices"][0]["causes"][:2]
    first["seconds"], second["seconds"] = second["seconds"], first["seconds"]
    del run["analysis"]["dataloader"][:]
    assert found in problem(run)


def test_the_right_line_for_another_reason() -> None:
    run = training("item")
    top = run["report"]["idle"]["devices"][0]["causes"][0]
    top["id"] = "native"
    assert problem(run).startswith("the top cause is 'native', want 'synchronisation'")
    top["id"], top["hint"] = SYNCHRONISATION, "copy from pinned memory"
    assert problem(run) == "the hint is 'copy from pinned memory', which says nothing of .item()"


def test_a_gpu_that_was_not_used() -> None:
    run = training()
    run["report"]["gpus"][1]["used"] = False
    run["report"]["notes"] = [{"what": "gpu1.util", "reason": "no permission"}]
    with pytest.raises(AssertionError, match=r"no GPU was used.*gpu1\.util: no permission"):
        compared(run)


def test_a_gpu_that_is_busy_for_somebody_else() -> None:
    run = training()
    other = run["report"]["gpus"][0]
    other.update(used=True, busy_s=1.0, idle_s=19.0)
    assert compared(run).gpu == "Trainer"


def test_a_trace_without_kernels() -> None:
    run = training()
    run["analysis"]["temporal_breakdown"] = []
    with pytest.raises(AssertionError, match="the trace has no device events"):
        compared(run)
