"""Executes a notebook by nbclient, as ``jupyter execute`` does. Started by omni-perf, with ``python -c``.

The one argument is an object of JSON. Descriptor 3 takes lines of JSON: what is missing, or what is wrong, or where
the kernel's connection file is; then 4 says, by its end, that the cells are followed. The text of each cell that is
about to be executed follows: the kernel's own message may come late; and at last that a cell took too long, if one did.
Where it is only to be tried whether this Python can execute the notebook, there is one line at most: what is missing.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path[:] = [folder for folder in sys.path if folder]  # python -c puts this folder first: no module is meant

FAILED = 1
CANNOT = 2
"""Exit codes: a cell failed, or the notebook could not be executed."""


def say(**facts: str | int) -> None:
    """Report to who has started this, while it reads."""
    try:
        with open(3, "w", encoding="ascii", closefd=False) as reader:
            reader.write(json.dumps(facts) + "\n")
    except OSError:
        pass


def execute(given: dict[str, Any]) -> int:
    """Execute the notebook, and write it as far as it got."""
    try:
        import nbclient.exceptions
        import nbformat
    except ImportError as error:
        say(missing=(error.name or str(error)).partition(".")[0])
        return CANNOT
    try:
        notebook: Any = nbformat.read(given["notebook"], as_version=4)
    except Exception as error:  # whatever nbformat makes of a file that is no notebook
        say(problem=f"the notebook {given['notebook']} cannot be read: {first_line(error)}")
        return CANNOT
    lacking = kernel_lacks(given["kernel_name"] or notebook.metadata.get("kernelspec", {}).get("name") or "python3")
    if lacking:
        say(**lacking)
        return CANNOT
    if given["only_try"]:
        return 0
    client: Any

    def started(**_: object) -> None:
        say(kernel=str(client.km.connection_file))
        os.read(4, 1)

    def executes(*, cell: Any, **_: object) -> None:
        say(cell=cell.source, at=time.time_ns())

    client = nbclient.NotebookClient(
        notebook,
        allow_errors=given["allow_errors"],
        kernel_name=given["kernel_name"],
        timeout=given["timeout"],
        resources={"metadata": {"path": str(Path(given["notebook"]).absolute().parent)}},
        on_notebook_start=started,
        **({"on_cell_execute": executes} if hasattr(nbclient.NotebookClient, "on_cell_execute") else {}),  # since 0.6.1
    )
    code = 0
    try:
        client.execute()
    except Exception as error:  # a cell's, or nbclient's own where an interrupt took the kernel from it
        if isinstance(error, nbclient.exceptions.CellTimeoutError):
            say(late=True)
        print(error if str(error) else error.__context__ or repr(error), file=sys.stderr)
        code = FAILED
    if given["executed"]:
        nbformat.write(notebook, given["executed"])
    return code


def kernel_lacks(name: str) -> dict[str, str]:
    """Return what there is to report of a kernel that cannot be started; else nothing."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec: Any = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        if name == "python3":  # that of each Python with ipykernel
            return {"missing": "ipykernel"}
        what = f"kernel {name!r}"
        known = "jupyter kernelspec list shows those there are, and --kernel-name takes another"
        return {"missing": what, "problem": f"there is no {what}; {known}"}
    own = re.fullmatch(r"python(3(\.\d+)?)?", spec.argv[0])  # jupyter_client takes the Python that it runs in
    if own and any("ipykernel" in word for word in spec.argv) and find_spec("ipykernel") is None:
        return {"missing": "ipykernel"}
    return {}


def first_line(error: Exception) -> str:
    """Return what an error says, in a line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


sys.exit(execute(json.loads(sys.argv[1])))
