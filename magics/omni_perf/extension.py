"""Loads the extension into a shell and takes it out again without a trace."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from omni_perf import contract, lastreport, publish, silence
from omni_perf.cells import CellRecorder
from omni_perf.cleanup import take_out
from omni_perf.magic import OmniPerfMagic
from omni_perf.options import parse_on
from omni_perf.report import Died, Draw, Report, kept
from omni_perf.session import Session, SessionError
from omni_perf.shell import Shell, parent_header

NAME = "omni_perf"

ON = "OMNI_PERF_ON"
"""A variable of the environment; its value are the options of ``%omni_perf on``. sidecar/doors/kernelspec sets it."""


@dataclass(frozen=True)
class _Loaded:
    shell: Shell
    recorder: CellRecorder
    session: Session


_loaded: dict[int, _Loaded] = {}
"""By id of the shell: a process has one, tests have several."""


def load(shell: Shell) -> None:
    """Register transformer, events and magics."""
    if id(shell) in _loaded:
        return
    connection_file = _connection_file(shell)
    notebook = lastreport.notebook_key() if connection_file else ""
    session = Session(connection_file, notebook=notebook)
    recorder = CellRecorder(shell, session)
    magic = OmniPerfMagic(shell, recorder, session)
    shell.input_transformers_cleanup.append(take_out)
    shell.events.register("pre_run_cell", recorder.pre_run_cell)
    shell.events.register("post_run_cell", recorder.post_run_cell)
    shell.register_magic_function(magic.function(), "line_cell", NAME)
    shell.set_hook("complete_command", magic.complete, str_key="%" + NAME)
    _loaded[id(shell)] = _Loaded(shell, recorder, session)
    _say_how_the_last_one_died(shell, session, notebook)
    if ON in os.environ:
        _profile_every_cell(recorder, session, os.environ[ON])


def _profile_every_cell(recorder: CellRecorder, session: Session, options: str) -> None:
    """Do as ``%omni_perf on`` does, without a word: this is a kernel that was installed for it."""
    recorder.automatic = parse_on(options).options
    try:
        session.get_ready_later()
    except SessionError:  # the first cell says it
        pass


def _say_how_the_last_one_died(shell: Shell, session: Session, notebook: str) -> None:
    """Show what the sidecar of a kernel that died has left for this one, in a line."""
    left = lastreport.take(notebook)
    if left is None:
        return
    kept.died = Died(left.text, Report("", left.headline, left.compressed, contract.Bundle(), session.draw, left.cell))
    sentence = f"{left.sentence} %omni_perf last died shows its last cell."
    if parent_header(shell) is not None:
        publish.say(sentence)
        return

    def say(_: object) -> None:
        shell.events.unregister("pre_run_cell", say)
        publish.say(sentence)

    shell.events.register("pre_run_cell", say)  # no cell runs that it could be an output of: the kernel starts


def unload(shell: Shell) -> None:
    """Take everything out and end the sidecar."""
    loaded = _loaded.pop(id(shell), None)
    if loaded is None:
        return
    shell.input_transformers_cleanup.remove(take_out)
    shell.events.unregister("pre_run_cell", loaded.recorder.pre_run_cell)
    shell.events.unregister("post_run_cell", loaded.recorder.post_run_cell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)
    shell.Completer.custom_completers.strs.pop("%" + NAME, None)
    loaded.recorder.close()
    loaded.session.close()
    if not _loaded:
        silence.uninstall()


def drawing() -> Draw | None:
    """Return what draws reports by a sidecar, where the extension is loaded: with a viewer, not as a picture."""
    return next((loaded.session.draw for loaded in _loaded.values()), None)


def _connection_file(shell: Shell) -> str:
    """Return the path of the kernel's connection file, "" in terminal IPython."""
    kernelapp: Any = sys.modules.get("ipykernel.kernelapp")
    if getattr(shell, "kernel", None) is None or kernelapp is None:
        return ""
    application = kernelapp.IPKernelApp
    return str(application.instance().abs_connection_file) if application.initialized() else ""
