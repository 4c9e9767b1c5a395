"""Profiles one cell with the installed package: the last step of `make test-wheel` and `make wheels`."""

from __future__ import annotations

import os
from typing import Any

import omni_perf
from IPython.core.interactiveshell import InteractiveShell
from omni_perf import launcher

if os.environ.get("OMNI_PERF_TRY_EMULATED"):  # qemu makes up what a process reads of itself in /proc
    launcher._start_time = lambda pid: 0  # pyright: ignore[reportPrivateUsage]

shell: Any = InteractiveShell.instance()
shell.run_line_magic("load_ext", "omni_perf")
shell.run_cell("%%omni_perf\nsum(range(10**6))").raise_error()
report = omni_perf.last()
assert report is not None, "the cell has no report"
assert report.to_dict()["targets"][0]["cell"]["outcome"] == "ok"
print("1 passed, 0 failed")
