"""Profiles one cell with the installed package: the last step of `make test-wheel` and `make wheels`."""

from __future__ import annotations

import json
import os
import sys
from importlib.resources import files
from pathlib import Path
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
for schema in ("report.schema.json", "analysis.schema.json"):
    assert json.loads(files(omni_perf).joinpath(schema).read_text())["$id"], f"{schema} is not in the wheel"

# JupyterLab looks in share/jupyter/labextensions of its environment: each folder's package.json names the script it
# loads, and no page_config.json may disable it.
extension = Path(os.environ.get("OMNI_PERF_TRY_SHARE", sys.prefix), "share/jupyter/labextensions/omni-perf")
package = json.loads((extension / "package.json").read_text())
assert (package["name"], package["version"]) == ("omni-perf", omni_perf.__version__)
script = (extension / package["jupyterlab"]["_build"]["load"]).read_text()
assert package["jupyterlab"]["_build"]["mimeExtension"] and '"omni-perf"' in script and "_JUPYTERLAB" in script
for name in ("viewer.js", "viewer.css", "picture.css"):
    assert name in script and (extension / "static" / name).stat().st_size > 1000, f"{name} is not in the wheel"
print("1 passed, 0 failed")
