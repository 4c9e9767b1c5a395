import pytest
from omni_perf.cleanup import filled_in, options_line, take_out


def transformed(cell: str) -> str:
    return "".join(take_out(cell.splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("cell", "becomes"),
    [
        ("%%omni_perf\nx = 1\n", "# %%omni_perf\nx = 1\n"),
        ("%%omni_perf -p 0.1\nx = 1\n", "# %%omni_perf -p 0.1\nx = 1\n"),
        ("%%omni_perf", "# %%omni_perf"),
        ("%%omni_perf\n%%time\nx\n", "%%time\nx\n"),
        ("%%omni_perf\n\n  \n%%bash\nls\n", "%%bash\nls\n"),
        ("%%omni_perf\n\nx\n%%time\n", "# %%omni_perf\n\nx\n%%time\n"),
        ("%%omni_perf\n%%omni_perf -p 1\nx\n", "# %%omni_perf\n# %%omni_perf -p 1\nx\n"),
        ("%%omni_perf\n%%omni_perf\n%%time\nx\n", "%%time\nx\n"),
        ("%%omni_perf?", "%%omni_perf?"),
        ("%%omni_perfect\nx\n", "%%omni_perfect\nx\n"),
        ("x = '''\n%%omni_perf\n'''\n", "x = '''\n%%omni_perf\n'''\n"),
        ("%%time\n%%omni_perf\nx\n", "%%time\n%%omni_perf\nx\n"),
        ("%%px\n%%omni_perf\nx\n", "%%px\n# %%omni_perf\nx\n"),
        ("%%px --targets 0\n\n%%omni_perf -p 1\nx", "%%px --targets 0\n\n# %%omni_perf -p 1\nx"),
        ("%%px\nx\n%%omni_perf\n", "%%px\nx\n%%omni_perf\n"),
        ("%%px\n%%time\n%%omni_perf\n", "%%px\n%%time\n%%omni_perf\n"),
        ("%%px", "%%px"),
        ("", ""),
    ],
)
def test_the_line_is_taken_out(cell: str, becomes: str) -> None:
    assert transformed(cell) == becomes


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("%%omni_perf\nx", ""),
        ("%%omni_perf   -p 0.1  \nx", "-p 0.1"),
        ("\n\n%%omni_perf --quiet", "--quiet"),
        ("%%time\n%%omni_perf -p 1\nx", "-p 1"),
        ("%%timeit -n 1\n%%omni_perf\nx", ""),
        ("%%px\n%%omni_perf\nx", "--cluster %%px"),
        ("%%px --targets 0\n%%omni_perf -p 1\nx", "-p 1 --cluster %%px"),
        ("%%px\n%%omni_perf --cluster rc\nx", "--cluster rc"),
        ("%%time\n%%px\n%%omni_perf\nx", "--cluster %%px"),
        ("%%px\n%%time\n%%omni_perf\nx", None),
        ("%%px\nx", None),
        ("%%capture\n%%omni_perf\nx", None),  # runs its body as a cell, which is recorded then
        ("%%bash\n%%omni_perf\nls", None),
        ("x\n%%omni_perf", None),
        ("%%omni_perf?", None),
        ("%%omni_perfect", None),
        ("", None),
    ],
)
def test_what_stands_behind_it(cell: str, options: str | None) -> None:
    assert options_line(cell) == options


@pytest.mark.parametrize(
    ("line", "filled"),
    [
        ("--name {name}", "--name first"),
        ("--prof_dir $folder/today --name {n + 1}", "--prof_dir runs/today --name 4"),
        ("--name {{name}}", "--name {name}"),
        ("--name {missing}", "--name {missing}"),
        ("--name {1 / 0}", "--name {1 / 0}"),
        ("--name plain", "--name plain"),
    ],
)
def test_variables_are_filled_in_as_in_other_magics(line: str, filled: str) -> None:
    assert filled_in(line, {"name": "first", "folder": "runs", "n": 3}) == filled
