"""The magics ``%%omni_perf`` and ``%omni_perf``: statements, and the way to subcommands."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from omni_perf import publish
from omni_perf.cells import CellRecorder
from omni_perf.options import Parsed, parse_cell, parse_statement
from omni_perf.session import Session
from omni_perf.shell import Shell
from omni_perf.subcommands import HELP, USAGE, Subcommands, run


class OmniPerfMagic:
    """What the magics do with the rest of their line."""

    def __init__(self, shell: Shell, recorder: CellRecorder, session: Session) -> None:
        self._shell = shell
        self._recorder = recorder
        self._subcommands = Subcommands(shell, recorder, session)

    def function(self) -> Callable[..., object]:
        """Return the function to register with IPython."""

        def omni_perf(line: str, cell: str | None = None, local_ns: Any = None) -> object:
            if cell is not None:
                return self._run_cell(line, cell, local_ns)
            return self._run_line(line, local_ns)

        omni_perf.__doc__ = HELP
        # As IPython.core.magic's decorators do: local names are handed over, {a} and $a
        # of the statement stay, and a semicolon at its end silences it.
        for mark in ("needs_local_scope", "_ipython_magic_no_var_expand", "_ipython_magic_output_can_be_silenced"):
            setattr(omni_perf, mark, True)
        return omni_perf

    @staticmethod
    def complete(_: object, event: Any) -> list[str]:
        """Offer the subcommands for the first word behind ``%omni_perf``.

        A completer of IPython: bound to the shell when it is set as a hook.
        """
        from IPython.core.error import TryNext

        words = str(event.text_until_cursor).lstrip().split()
        first = len(words) == 1 + bool(event.symbol)
        found = [word for word in USAGE if word.startswith(event.symbol)]
        if words[:1] != ["%omni_perf"] or not first or not found:
            raise TryNext
        return found

    def _run_cell(self, line: str, cell: str, local_ns: dict[str, Any] | None) -> object:
        """Serve callers of run_cell_magic; a typed ``%%omni_perf`` never comes here."""
        parsed = parse_cell(line)
        if parsed.wants_help:
            publish.say(HELP)
        elif parsed.problem:
            publish.warn(parsed.problem)
        return self._run(Parsed(parsed.options, cell), local_ns)

    def _run_line(self, line: str, local_ns: dict[str, Any] | None) -> object:
        subcommand = self._subcommands.find(line.strip())
        if subcommand is not None:
            return run(subcommand)
        parsed = parse_statement(line)
        if parsed.wants_help:
            publish.say(HELP)
            return None
        if parsed.problem:
            publish.warn(parsed.problem)
            if not parsed.rest or parsed.rest.startswith("-"):
                return None
        mistake = "" if line.strip().startswith("--") else self._mistake(parsed.rest, local_ns)
        if mistake:
            publish.warn(mistake)
            return None
        return self._run(parsed, local_ns)

    def _mistake(self, statement: str, local_ns: dict[str, Any] | None) -> str:
        """Return what is wrong if a subcommand was mistyped; empty for a statement."""
        source = self._shell.transform_cell(statement)
        try:
            body = ast.parse(source).body
        except SyntaxError:
            return self._subcommands.meant_by(statement)
        match body:
            case [ast.Expr(ast.Name(name) | ast.BinOp(ast.Name(name), ast.Sub()))]:  # "last -1" is a difference
                known = name in self._shell.user_ns or name in (local_ns or ()) or hasattr(builtins, name)
                return "" if known else self._subcommands.meant_by(statement)
            case _:
                return ""

    def _run(self, parsed: Parsed, local_ns: dict[str, Any] | None) -> object:
        """Run code and return the value of its last expression, as %time does; record just this."""
        shell = self._shell
        source = shell.transform_cell(parsed.rest)
        file = shell.compile.cache(source, self._recorder.number, parsed.rest)
        body = ast.parse(source, file).body
        value = None
        if body and isinstance(body[-1], ast.Expr):
            value = compile(ast.Expression(body[-1].value), file, "eval")
            del body[-1]
        statements = compile(ast.Module(body, []), file, "exec")
        names = shell.user_ns
        with self._recorder.recording(parsed.rest, file, parsed.options):
            exec(statements, names, local_ns)
            return eval(value, names, local_ns) if value is not None else None
