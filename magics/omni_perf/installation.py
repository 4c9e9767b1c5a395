"""Finds where this interpreter's libraries are, so that the user's own code can be distinguished from them."""

from __future__ import annotations

import os
import sys

from omni_perf.contract import Installation


def installation() -> Installation:
    """Return the folders of this interpreter, its standard library and this package."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    standard = {os.path.dirname(os.__file__), getattr(sys, "_stdlib_dir", None) or os.path.dirname(os.__file__)}
    return {
        "prefixes": sorted(prefixes),
        "standard": sorted(standard),
        "extension": os.path.dirname(os.path.abspath(__file__)),
    }
