"""Writes the line table of every code object of the standard library: `python linetables.py FILE`.

With it goes the line that CPython itself gives each code unit. linetable.go reads the file and documents
the format.

Sources are compiled here, so nothing of the library is imported. Two code objects with the same table
and first line count once. Left out are files that do not compile (some are there for that) and links that
a distribution leaves dangling.
"""

import os
import struct
import sys
import sysconfig
import warnings


def sources(folder):
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {"site-packages", "dist-packages", "__pycache__"})
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(path, name)


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_linetable"):
            yield from code_objects(constant)


def runs(code):
    """(count, line) for stretches of code units with the same line; -1 is no line."""
    result, previous, count = [], None, 0
    for line, _, _, _ in code.co_positions():
        line = -1 if line is None else line
        if line == previous:
            count += 1
            continue
        if count:
            result.append((count, previous))
        previous, count = line, 1
    if count:
        result.append((count, previous))
    return result


def main():
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(100_000)
    seen = set()
    with open(sys.argv[1], "wb") as out:
        for path in sources(sysconfig.get_path("stdlib")):
            try:
                with open(path, "rb") as source:
                    module = compile(source.read(), path, "exec", dont_inherit=True)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for code in code_objects(module):
                key = (code.co_firstlineno, code.co_linetable)
                if key in seen:
                    continue
                seen.add(key)
                name, table, lines = code.co_qualname.encode(errors="replace"), code.co_linetable, runs(code)
                out.write(struct.pack("<4I", len(name), code.co_firstlineno, len(table), len(lines)))
                out.write(name)
                out.write(table)
                out.write(b"".join(struct.pack("<Ii", *run) for run in lines))


main()
