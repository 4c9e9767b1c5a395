import pytest
from omni_perf.options import CELL_HELP, Options, parse_cell, parse_on, parse_statement
from omni_perf.schedule import of_figures


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", Options()),
        ("-p 0.01", Options(interval_ns=10_000_000)),
        ("--children tracks", Options(children="tracks")),
        ("--children=none -p 1", Options(children="none", interval_ns=1_000_000_000)),
        ("-p 1e-4 -s 0.5", Options(interval_ns=100_000, system_interval_ns=500_000_000)),
        ("--prof_interval=0.01 --sys_interval 2", Options(interval_ns=10_000_000, system_interval_ns=2_000_000_000)),
        ("--name 'first try' --quiet", Options(name="first try", quiet=True)),
        ("--name=x -p 0.002", Options(name="x", interval_ns=2_000_000)),
        ("  --quiet  ", Options(quiet=True)),
        ("--memory device", Options(device_history=True)),
        ("--memory", Options(device_history=True, expects_devices=False)),
        ("--memory --quiet", Options(device_history=True, expects_devices=False, quiet=True)),
        ("--memory=exact", Options(allocations=True)),
    ],
)
def test_options_of_a_cell(line: str, options: Options) -> None:
    parsed = parse_cell(line)
    assert (parsed.options, parsed.problem) == (options, "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-p", "-p needs a value; use %%omni_perf [-p SECONDS]"),
        ("-p fast", "-p takes seconds, such as -p 0.001, not 'fast'."),
        ("-p 0", "-p takes seconds"),
        ("-p -1", "-p takes seconds"),
        ("-p nan", "-p takes seconds"),
        ("-p inf", "-p takes seconds"),
        ("-s 1e9", "-s takes seconds"),
        ("--nonsense", "'--nonsense' is not an option; use %%omni_perf"),
        ("x = 1", "'x' is not an option"),
        ("--torhc", "'--torhc' is not an option; did you mean --torch?"),
        ("memory", "'memory' is not an option; did you mean --memory?"),
        ("--torch wiat=2", "'wiat=2' is not an option; did you mean wait=N?"),
        ("--torch wait=-1", "wait takes a whole number, such as wait=2, not '-1'"),
        ("--name", "--name needs a value"),
        ("--memory much", "--memory takes exact or device, not 'much'."),
        ("--memory=", "--memory needs a value"),
        ("--exact --torch", "--torch records when exactly GPUs worked, too, so --exact is left out."),
        ("--torch wait=-1 --exact", "so --exact is left out. wait takes a whole number"),
        ("--name 'open quote", ""),
    ],
)
def test_a_mistake_gives_a_sentence_and_keeps_the_rest(line: str, says: str) -> None:
    parsed = parse_cell(line + " --quiet" if says == "" else line)
    assert says in parsed.problem
    assert parsed.options.interval_ns == 0


@pytest.mark.parametrize(
    "line",
    [
        "--torch wait=2 active=3 --flops",
        "--torch --flops wait=2 active=3",
        "--torch wait=2 --flops active=3",
        "--torch wait=2,active=3 --flops",
    ],
)
def test_the_figures_of_a_schedule_have_any_place_behind_torch(line: str) -> None:
    parsed = parse_cell(line)
    assert parsed.problem == ""
    assert parsed.options.torch is not None and parsed.options.torch.flops
    assert parsed.options.torch.schedule == of_figures({"wait": 2, "active": 3})


def test_a_mistake_leaves_good_options_alone() -> None:
    parsed = parse_cell("-p fast --quiet --name run")
    assert parsed.options == Options(quiet=True, name="run")
    assert parsed.problem


def test_threshold_of_on() -> None:
    assert parse_on("").options.threshold_ns == 1_000_000_000
    assert parse_on("-t 0.2").options.threshold_ns == 200_000_000
    assert parse_on("--threshold=0").options.threshold_ns == 0
    assert "-t takes seconds" in parse_on("-t soon").problem
    assert "use %omni_perf on" in parse_on("--quiet").problem


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        ("f(x)", "f(x)"),
        ("-p 0.01 f(x, '-p')", "f(x, '-p')"),
        ("-- list", "list"),
        ("--quiet -- -x", "-x"),
        ("--name 'a b' y = f()", "y = f()"),
    ],
)
def test_statement_behind_options(line: str, statement: str) -> None:
    parsed = parse_statement(line)
    assert (parsed.rest, parsed.problem) == (statement, "")


def test_the_help_fits_into_a_notebook() -> None:
    assert max(map(len, CELL_HELP.splitlines())) <= 120
