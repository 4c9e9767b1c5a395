"""``python -m omni_perf``: become the omni-perf program."""

from __future__ import annotations

import os
import sys

from omni_perf.launcher import LaunchError, find_binary


def main() -> None:
    """Replace this process by the program, with the same arguments; what the program asks of Python is done here."""
    if sys.argv[1:2] in (["remote-put"], ["remote-get"]) and len(sys.argv) == 4:
        from omni_perf import remote

        remote.main(sys.argv[1:])
        return
    if sys.argv[1:2] == ["ray-worker"]:  # what Ray takes for a worker's Python: its hook runs before the first task
        os.environ.setdefault("__RAY_WORKER_PROCESS_SETUP_HOOK_ENV_VAR", "omni_perf.ray_worker")
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    try:
        binary = find_binary()
    except LaunchError as error:
        sys.exit(f"omni_perf: {error}")
    try:
        os.execv(binary, ["omni-perf", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"omni_perf: {binary} could not be executed: {error.strerror}.")


if __name__ == "__main__":
    main()
