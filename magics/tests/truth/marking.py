"""Writes marks into a program: at each, time and line are noted while it runs.

A mark is within the statement it belongs to, ``x = (_mark(…), f())[1]``, because IPython
makes a code object of each top-level statement, and their number, order and life shall be
those of the cell as typed. It holds until the next mark of the thread:

- a statement's first expression is marked with its line, a loop's body marks the loop's
  header at its end, where the next item is fetched;
- a call of one of the program's own functions marks the caller's line when it returns;
- what runs after the cell's last statement belongs to no line, nor does the compilation of the next one.

Marks cost 0.1 µs, on the line they mark. Lines shall take 20 µs and more.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

NO_LINE = 0

BITS = 16
"""Of a mark's number, below its time."""

PRELUDE = """
import builtins, time
builtins._marks = []
builtins._mark = builtins._marks.append
builtins._clock = time.perf_counter_ns
"""
"""What a program with marks needs to have run before it."""

_COMPILER = f"""
import sys
def marked(compiler):
    plain = compiler.__call__
    def __call__(self, *args, **kwargs):
        frame, shells = sys._getframe(1), []
        while frame is not None:
            if frame.f_code.co_name == "run_ast_nodes":
                shells.append(frame)
            frame = frame.f_back
        if len(shells) != 1 or not _marks or shells[0].f_locals["result"].info.silent:
            return plain(self, *args, **kwargs)
        place = _marks[-1] & (1 << {BITS}) - 1
        _mark(_clock() << {BITS})
        try:
            return plain(self, *args, **kwargs)
        finally:
            _mark(_clock() << {BITS} | place)
    compiler.__call__ = __call__
marked(type(get_ipython().compile))
"""

SHELL = f"""
import codeop
exec(compile({_COMPILER!r}, codeop.__file__, "exec"), {{"get_ipython": get_ipython}})
"""
"""What a kernel needs besides: IPython compiles each statement of a cell before it runs, for which no
line can be charged; on a busy machine that is half of the time of a cell of a thousand. What statements
compile, as magics do, is theirs; what is run silently, to fetch the marks, has none. The mark's own
function counts as codeop's, whose method it precedes."""

Place = tuple[str, int]
"""Name of a text and line; ("", 0) is no line."""


@dataclass
class Places:
    """Numbers the places that marks name."""

    numbers: dict[Place, int] = field(default_factory=lambda: {("", 0): NO_LINE})

    def mark(self, name: str, line: int) -> str:
        """Return the expression that marks this line."""
        place = (name, line) if line else ("", 0)
        return f"_mark(_clock() << {BITS} | {self.numbers.setdefault(place, len(self.numbers))})"

    def seconds(self, marks: list[int]) -> dict[Place, float]:
        """Return how long each place had, from its marks to the next ones."""
        places = list(self.numbers)
        times: dict[Place, float] = {}
        for mark, after in itertools.pairwise(marks):
            place = places[mark & (1 << BITS) - 1]
            times[place] = times.get(place, 0.0) + ((after >> BITS) - (mark >> BITS)) / 1e9
        return times


def own_names(sources: Iterable[str]) -> set[str]:
    """Return the names of the functions that these programs define."""
    names: set[str] = set()
    for source in sources:
        for node in ast.walk(_parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def by_hand(source: str, name: str, places: Places) -> str:
    """Replace «7» by a mark of line 7 of this text, «other.py:7» by one of another's."""

    def mark(found: re.Match[str]) -> str:
        file, _, line = found[1].rpartition(":")
        return places.mark(file or name, int(line))

    return re.sub("«(.*?)»", mark, source)


def marked(source: str, name: str, places: Places, own: set[str], ends: bool) -> str:
    """Return the source with its marks; ``ends``: it is a cell, after which no line runs."""
    body = _parse(source).body
    last = body[-1].value if ends and isinstance(body[-1], ast.Expr) else None
    marker = _Marker(name, places, own, last)
    marker.block(body)
    text = marker.edits.applied(source)
    return f"{text}\n{places.mark('', 0)}" if ends and last is None else text


def _parse(source: str) -> ast.Module:
    """Parse a cell; lines of magics do nothing."""
    code = re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE)
    return compile(code, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@dataclass
class _Edits:
    """Insertions: line, column, and what orders those of one place."""

    found: list[tuple[int, int, int, int, str]] = field(default_factory=list[tuple[int, int, int, int, str]])

    def around(self, node: ast.expr, before: str, after: str) -> None:
        """Of two around the same, the first is outside; what closes comes before what opens."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        width = (node.end_lineno - node.lineno) * 100_000 + node.end_col_offset - node.col_offset
        turn = len(self.found)
        self.found.append((node.lineno, node.col_offset, -width, turn, before))
        self.found.append((node.end_lineno, node.end_col_offset, width - (1 << 40), -turn, after))

    def before(self, node: ast.stmt, text: str) -> None:
        self.found.append((node.lineno, node.col_offset, -(1 << 30), len(self.found), text))

    def after(self, node: ast.stmt, text: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        self.found.append((node.end_lineno, node.end_col_offset, 0, len(self.found), text))

    def applied(self, source: str) -> str:
        lines = [line.encode() for line in source.split("\n")]
        for line, column, _, _, text in sorted(self.found, reverse=True):  # from the end: places stay
            old = lines[line - 1]
            lines[line - 1] = old[:column] + text.encode() + old[column:]
        return b"\n".join(lines).decode()


@dataclass
class _Marker:
    name: str
    places: Places
    own: set[str]
    last: ast.expr | None
    """What the cell displays: no line runs once it is known."""
    edits: _Edits = field(default_factory=_Edits)

    def at(self, line: int) -> str:
        return self.places.mark(self.name, line)

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        first = _first_expression(node)
        if first is not None:
            self.expression(first)
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.Delete) and not _is_future(node):
            self.edits.before(node, f"{self.at(node.lineno)}; ")
        for child in _expressions(node):
            if isinstance(child, ast.Lambda):
                self.expression(child.body)  # runs when it is called
        for body in _bodies(node):
            self.block(body)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith):
            assert first is not None
            self.back_to(first.lineno, node.body)

    def expression(self, node: ast.expr) -> None:
        """Mark the line of an expression, and again after each call of an own function."""
        end = f"), {self.places.mark('', 0)})[1]" if node is self.last else "))[1]"
        self.edits.around(node, f"({self.at(node.lineno)}, (", end)
        for call in _calls(node):
            if _name(call) in self.own:
                self.edits.around(call, "(", f", {self.at(node.lineno)})[0]")

    def back_to(self, line: int, body: list[ast.stmt]) -> None:
        """Mark a loop's or with's header where its body ends."""
        for node in _continues(body):
            self.edits.before(node, f"{self.at(line)}; ")
        for last in _ends(body):
            self.edits.after(last, f"; {self.at(line)}")


def _first_expression(node: ast.stmt) -> ast.expr | None:
    """Return what a statement evaluates first, None where that takes no time."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return None  # a docstring
        case ast.Expr(value=value) | ast.Assign(value=value) | ast.AugAssign(value=value):
            return value
        case ast.AnnAssign(value=value) | ast.Return(value=value) | ast.Raise(exc=value):
            return value
        case ast.If(test=value) | ast.While(test=value) | ast.Assert(test=value):
            return value
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.Match(subject=value):
            return value
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return items[0].context_expr
        case ast.FunctionDef(args=ast.arguments(defaults=[value, *_])):
            return value
        case _:
            return None


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body:
            yield body
    for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield handler.body


def _expressions(root: ast.AST) -> Iterator[ast.AST]:
    """Walk the expressions of one statement, not those of statements within it, and not f-strings,
    whose parts have no places before Python 3.12."""
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, ast.stmt | ast.JoinedStr | ast.ExceptHandler | ast.match_case):
            yield child
            yield from _expressions(child)


def _continues(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the continue statements of the loop with this body."""
    for node in body:
        if isinstance(node, ast.Continue):
            yield node
        elif isinstance(node, ast.If | ast.With | ast.Try | ast.Match):
            for inner in _bodies(node):
                yield from _continues(inner)


def _ends(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the simple statements that a block may end with and that let it go on."""
    last = body[-1]
    if isinstance(last, ast.If | ast.With | ast.AsyncWith | ast.Try | ast.Match):
        for inner in _bodies(last):
            yield from _ends(inner)
    elif isinstance(last, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Pass | ast.Delete):
        yield last


def _calls(root: ast.AST) -> Iterator[ast.expr]:
    """Return the calls of an expression, those awaited with their await; not those in lambdas."""
    if isinstance(root, ast.Await) and isinstance(root.value, ast.Call):
        yield root
        parts = ast.iter_child_nodes(root.value)
    else:
        if isinstance(root, ast.Call):
            yield root
        parts = ast.iter_child_nodes(root)
    for part in parts:
        if not isinstance(part, ast.JoinedStr | ast.Lambda):
            yield from _calls(part)


def _name(call: ast.expr) -> str:
    inner = call.value if isinstance(call, ast.Await) else call
    assert isinstance(inner, ast.Call)
    match inner.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
