"""Gives a Python under `omni-perf run` the step hook, and steps aside for the program's own sitecustomize.

Python imports this before the program runs, because `omni-perf run` puts the archive that contains it
at the front of PYTHONPATH. Afterwards the search path is what it would have been, and so is the module
sitecustomize: the program's own one, or none. Older Pythons read this file, too: it has no annotations.
"""

# pyright: reportMissingImports=false, reportUnusedImport=false

import sys

_archive = __file__[: -len("/sitecustomize.py")]
try:
    import _omni_perf.placed  # noqa: F401
except Exception:  # the program runs without the hook
    pass
sys.path[:] = [place for place in sys.path if place != _archive]
sys.path_importer_cache.pop(_archive, None)
del sys.modules["sitecustomize"]
import sitecustomize  # noqa: E402, F401  # site expects its error if there is none
