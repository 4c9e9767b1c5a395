"""A C compiler for wheels that run on old systems: ``python tools/zigcc.py TARGET ARG…``.

Zig's compiler links against the glibc that TARGET names, for x86-64 and arm64 alike:
``x86_64-linux-gnu.2.28``. go-nvml leaves NVIDIA's functions unresolved, to be bound when the
driver's library is loaded, and asks the linker for that; ``zig cc`` does not pass the wish
on. So its linker is run a second time, with the arguments it printed and this one.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

UNRESOLVED = "--unresolved-symbols=ignore-in-object-files"


def main() -> int:
    """Compile, or link."""
    target, *arguments = sys.argv[1:]
    zig = [sys.executable, "-m", "ziglang"]
    if "-Wl," + UNRESOLVED not in arguments:
        return subprocess.call([*zig, "cc", "-target", target, *arguments])
    arguments = [argument for argument in arguments if argument != "-Wl," + UNRESOLVED]
    tried = subprocess.run([*zig, "cc", "-v", "-target", target, *arguments], stderr=subprocess.PIPE, text=True)
    for line in tried.stderr.splitlines():
        if line.startswith("ld.lld "):
            strip = ["--strip-all"] if "-s" in arguments else []
            return subprocess.call([*zig, *shlex.split(line), UNRESOLVED, *strip])
    sys.stderr.write(tried.stderr)
    return tried.returncode or 1


if __name__ == "__main__":
    sys.exit(main())
