"""IPython in a terminal, as a process of its own: the text form, and no trace in the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SESSION = r"""%load_ext omni_perf
_ = get_ipython().run_cell("%%omni_perf\nimport time\ndef work(): time.sleep(0.2)\nwork()")
%omni_perf sum(range(10))
%omni_perf list
"""


def test_a_terminal_shows_text(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("ipython")
    ran = subprocess.run(
        [str(program), "--simple-prompt", "--no-banner", "--no-confirm-exit", "--HistoryManager.hist_file=:memory:"],
        input=SESSION,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        timeout=60,
    )
    shown = ran.stdout + ran.stderr
    assert "Cell [" in shown
    assert "waiting" in shown
    assert "work()" in shown
    assert "<svg" not in shown
    assert "Out[3]: 45" in shown
    assert "sum(range(10))" in shown.rpartition("In [")[0]
    assert "Traceback" not in shown
