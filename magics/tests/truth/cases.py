"""Reads the cases: what a user does in a notebook, one text file for each kind of cells.

    === name of the case
    needs numpy                   a module without which the case is skipped
    --- file helpers.py           written beside the notebook before the case runs
    --- cell                      run in order; those with %%omni_perf or %omni_perf are judged
    --- cell by hand              has its marks, «7» for line 7, «0» for no line, and gets no others

A mark «file.py:7» by hand is one of a line of that file.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).with_name("cells")

SCRIPT = "script.py"

PROFILED = re.compile(r"%%?omni_perf\b")


@dataclass(frozen=True)
class Text:
    """A cell or a file of a case."""

    name: str
    """Of a file; a cell's is its number within the case: "#1", "#2"."""
    source: str
    by_hand: bool = False

    @property
    def profiled(self) -> bool:
        return self.name == SCRIPT or PROFILED.search(self.source) is not None


@dataclass
class Case:
    name: str
    cells: list[Text] = field(default_factory=list[Text])
    files: list[Text] = field(default_factory=list[Text])
    needs: list[str] = field(default_factory=list[str])

    def script(self) -> str | None:
        """Return the case as one program, None where it needs a notebook."""
        if any(cell.by_hand for cell in self.cells):
            return None
        parts: list[str] = []
        for cell in self.cells:
            source = re.sub(r"^%%omni_perf.*", "#", cell.source)
            if _compiles(source):
                parts.append(source)
            elif _compiles(main := f"async def main():\n{textwrap.indent(source, '    ')}\nasyncio.run(main())"):
                parts.append(main)
            else:  # a magic
                return None
        return "\n".join(parts)


def _compiles(source: str) -> bool:
    try:
        compile(source, "script", "exec")
    except SyntaxError:
        return False
    return True


def load() -> list[Case]:
    """Return all cases, by file, in the order of the file."""
    cases = [case for path in sorted(FOLDER.glob("*.txt")) for case in parse(path.read_text())]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), f"two cases of one name in {names}"
    return cases


def parse(text: str) -> list[Case]:
    cases: list[Case] = []
    for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, *texts = re.split(r"^--- ", part, flags=re.MULTILINE)
        title, *options = head.strip().splitlines()
        case = Case(title.strip())
        case.needs = [option.split()[1] for option in options]
        for piece in texts:
            kind, _, source = piece.partition("\n")
            words = kind.split()
            source = source.strip("\n")
            if words[0] == "file":
                case.files.append(Text(words[1], source + "\n", "hand" in words))
            else:
                case.cells.append(Text(f"#{len(case.cells) + 1}", source, "hand" in words))
        cases.append(case)
    return cases
