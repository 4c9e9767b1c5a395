"""Compares profiles with the clock that ordinary cells keep of their own lines.

``cells/*.txt`` are the cells as a user types them. ``marking`` writes a mark into each
statement, on its line and within it, so that the cell has the code objects it would have
without: a mark is a C function that notes time and line. ``running`` runs the marked cells
under ``%%omni_perf`` in a real kernel, or as a script under ``omni-perf run``, and
``judging`` compares the seconds per line of the report with those of the marks.
"""
