"""Registers a kernel with Jupyter that is another one with omni_perf in it. Started by omni-perf, with ``python -c``.

The one argument is an object of JSON; one object of JSON is printed: what was installed, or what is missing or wrong.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:] = [folder for folder in sys.path if folder]  # python -c puts this folder first: no module is meant

ARGUMENT = "--IPKernelApp.extra_extensions=omni_perf"
VARIABLE = "OMNI_PERF_ON"
"""Of the kernel: the options of ``%omni_perf on``, which the extension reads when it is loaded."""


def install(given: dict[str, Any]) -> dict[str, str]:
    """Install the kernel; return what there is to say of it."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError as error:
        return {"missing": (error.name or str(error)).partition(".")[0]}
    manager: Any = KernelSpecManager()
    try:
        spec: Any = manager.get_kernel_spec(given["kernel"])
    except NoSuchKernel:
        if given["kernel"] == "python3":  # that of each Python with ipykernel
            return {"missing": "ipykernel"}
        problem = f"there is no kernel {given['kernel']!r}; jupyter kernelspec list shows those there are"
        return {"missing": f"kernel {given['kernel']!r}", "problem": problem}
    if not any("ipykernel" in word for word in spec.argv):
        return {"problem": f"the kernel {given['kernel']!r} is not IPython's, which alone loads extensions"}
    wrapped: dict[str, Any] = spec.to_dict()
    if ARGUMENT in wrapped["argv"]:
        return {"problem": f"the kernel {given['kernel']!r} has omni_perf already"}
    if re.fullmatch(r"python(3(\.\d+)?)?", wrapped["argv"][0]):
        wrapped["argv"][0] = sys.executable  # that of whoever starts it, else
    without = lacks(wrapped["argv"][0], {**os.environ, **wrapped["env"]})
    if without:
        return {"missing": "kernel with omni_perf", "problem": without}
    name = given["name"] or f"{given['kernel']}-omni_perf"
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return {"problem": f"{name!r} is no name of a kernel: letters, digits, '.', '_' and '-' are allowed"}
    wrapped["argv"].append(ARGUMENT)
    wrapped["env"][VARIABLE] = given["options"]
    wrapped["display_name"] = given["display_name"] or re.sub(r" \(ipykernel\)$", "", spec.display_name) + " (omni_perf)"
    prefix = given["prefix"] or (sys.prefix if not given["user"] and sys.prefix != sys.base_prefix else None)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernel"
        if spec.resource_dir and os.path.isdir(spec.resource_dir):  # its pictures
            shutil.copytree(spec.resource_dir, made)
        else:
            made.mkdir()
        (made / "kernel.json").write_text(json.dumps(wrapped, indent=1))
        try:
            place = manager.install_kernel_spec(str(made), name, user=prefix is None, prefix=prefix)
        except OSError as error:
            return {"problem": f"the kernel cannot be written: {error}"}
    return {"name": name, "display_name": wrapped["display_name"], "place": str(place)}


def lacks(python: str, environment: dict[str, str]) -> str:
    """Return what to do where the kernel's Python has no omni_perf; else nothing."""
    try:
        tried = subprocess.run([python, "-c", "import omni_perf"], env=environment, capture_output=True, check=False)
    except OSError as error:
        return f"the kernel's interpreter {python} cannot be started: {error.strerror}"
    if tried.returncode == 0:
        return ""
    return f"the kernel's interpreter {python} has no omni_perf; {python} -m pip install omni_perf installs it"


print(json.dumps(install(json.loads(sys.argv[1]))))
