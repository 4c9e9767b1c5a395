"""The parts of IPython that the extension leans on, as types.

IPython's own classes are only partly typed and slow to import; these protocols say what
is used and are checked against real shells by the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class CellInfo(Protocol):
    """``IPython.core.interactiveshell.ExecutionInfo``: one per run of a cell."""

    raw_cell: str | None
    store_history: bool


class CellResult(Protocol):
    """``IPython.core.interactiveshell.ExecutionResult``."""

    info: CellInfo
    error_before_exec: BaseException | None
    error_in_exec: BaseException | None


class Events(Protocol):
    """``shell.events``."""

    def register(self, event: str, function: Callable[..., None]) -> None: ...
    def unregister(self, event: str, function: Callable[..., None]) -> None: ...


class DisplayPublisher(Protocol):
    """``shell.display_pub``."""

    def publish(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *,
        transient: Mapping[str, Any] | None = None,
        update: bool = False,
    ) -> None: ...


class Compiler(Protocol):
    """``shell.compile``: names the code of cells and keeps it in ``linecache``."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str: ...
    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str: ...


class MagicsManager(Protocol):
    """``shell.magics_manager``: magics by kind ("line", "cell") and name."""

    magics: dict[str, dict[str, Callable[..., object]]]


class Completers(Protocol):
    """``shell.Completer.custom_completers``: completers by the first word of a line."""

    strs: dict[str, object]


class Completer(Protocol):
    """``shell.Completer``."""

    custom_completers: Completers


class Shell(Protocol):
    """``IPython.core.interactiveshell.InteractiveShell`` and its subclasses."""

    events: Events
    display_pub: DisplayPublisher
    compile: Compiler
    magics_manager: MagicsManager
    Completer: Completer
    execution_count: int
    user_ns: dict[str, Any]
    user_global_ns: dict[str, Any]

    @property
    def input_transformers_cleanup(self) -> list[Callable[[list[str]], list[str]]]: ...
    def transform_cell(self, raw_cell: str) -> str: ...
    def run_cell(self, raw_cell: str, *, store_history: bool = False) -> CellResult: ...
    def set_hook(self, name: str, hook: Callable[..., object], *, str_key: str) -> None: ...
    def register_magic_function(
        self, func: Callable[..., object], magic_kind: str = "line", magic_name: str | None = None
    ) -> None: ...


def expand_names(shell: Shell, text: str) -> str:
    """Replace {a} and $a by the user's values, as IPython does for the lines of magics."""
    from IPython.utils.text import DollarFormatter

    try:
        return DollarFormatter().vformat(text, args=(), kwargs=shell.user_ns)
    except Exception:  # as IPython: what cannot be replaced stays
        return text


def number_of(shell: Shell, info: CellInfo) -> int:
    """Return the number that IPython gives to a cell, at its pre_run_cell event."""
    return shell.execution_count - int(info.store_history and counts_before())


def number_around(shell: Shell) -> int:
    """Return the execution count of the cell that runs."""
    return shell.execution_count - int(counts_before())


def counts_before() -> bool:
    """Whether IPython counts up before that event, as from 9.8 on, or after the cell."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython, "version_info", ()) >= (9, 8)


def is_notebook(shell: Shell) -> bool:
    """Whether a front end shows HTML: an IPython inside a Jupyter kernel."""
    return getattr(shell, "kernel", None) is not None


def parent_header(shell: Shell) -> Mapping[str, Any] | None:
    """Return the header of the execute_request that the shell works on, if there is one."""
    get_parent: Callable[[], Mapping[str, Any] | None] | None = getattr(shell, "get_parent", None)
    if get_parent is None:
        return None
    parent = get_parent() or {}  # None before the first request, in ipykernel 6
    return parent.get("header") or None


def parent_msg_id(shell: Shell) -> str:
    """Return the id of the execute_request that the shell works on, or ""."""
    return str((parent_header(shell) or {}).get("msg_id", ""))
