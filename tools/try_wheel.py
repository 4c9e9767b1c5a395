"""Profiles one cell with the installed package: the last step of `make test-wheel`."""

from __future__ import annotations

from typing import Any

import omni_perf
from IPython.core.interactiveshell import InteractiveShell

shell: Any = InteractiveShell.instance()
shell.run_line_magic("load_ext", "omni_perf")
shell.run_cell("%%omni_perf\nsum(range(10**6))").raise_error()
report = omni_perf.last()
assert report is not None, "the cell has no report"
assert report.to_dict()["target"]["cell"]["outcome"] == "ok"
print("1 passed, 0 failed")
