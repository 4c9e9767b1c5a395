"""Brings the JupyterLab extension in this interpreter's environment up to date: part of ``make build``.

An editable install copies it once; pyproject.toml says which files go where.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent

wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
for source, target in wheel["shared-data"].items():
    path = ROOT / source
    for file in path.iterdir() if path.is_dir() else [path]:
        copy = Path(sys.prefix, target, file.name) if path.is_dir() else Path(sys.prefix, target)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
