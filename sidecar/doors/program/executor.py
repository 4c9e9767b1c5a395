"""Executes a notebook by nbclient, as ``jupyter execute`` does. Started by omni-perf, with ``python -c``.

The one argument is an object of JSON. Descriptor 3 takes lines of JSON: what is missing, or what is wrong, or where
the kernel's connection file is; then 4 says, by its end, that the cells are followed. The text of each cell that is
about to be executed follows: the kernel's own message may come late; and at last that a cell took too long, if one did.
"""

from __future__ import annotations

import json
import os
import sys
import time
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
        from jupyter_client.kernelspec import NoSuchKernel
    except ImportError as error:
        say(missing=error.name or str(error))
        return CANNOT
    try:
        notebook: Any = nbformat.read(given["notebook"], as_version=4)
    except Exception as error:  # whatever nbformat makes of a file that is no notebook
        say(problem=f"the notebook {given['notebook']} cannot be read: {first_line(error)}")
        return CANNOT
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
    except NoSuchKernel as error:
        say(problem=f"there is no kernel {error.name!r}; jupyter kernelspec list shows those there are")
        return CANNOT
    except Exception as error:  # a cell's, or nbclient's own where an interrupt took the kernel from it
        if isinstance(error, nbclient.exceptions.CellTimeoutError):
            say(late=True)
        print(error if str(error) else error.__context__ or repr(error), file=sys.stderr)
        code = FAILED
    if given["executed"]:
        nbformat.write(notebook, given["executed"])
    return code


def first_line(error: Exception) -> str:
    """Return what an error says, in a line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


sys.exit(execute(json.loads(sys.argv[1])))
