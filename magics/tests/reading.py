"""Report documents as tests read them: with names, texts and seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omni_perf.document import tables


def reading(document: dict[str, Any]) -> dict[str, Any]:
    """A report's tables, and what is one of a kind in it."""
    return {
        **tables(document),
        "target": document["targets"][0],
        "sampling": document["targets"][0]["sampling"],
        "duration_s": document["duration_ns"] / 1e9,
        "headline": document["headline"]["text"],
        "phases": document["phases"],
    }


def frames(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The frames, with names."""
    functions, files, columns = document["functions"], document["files"], document["frames"]
    return [
        {
            "function": functions[function]["label"] or functions[function]["name"],
            "file": files[functions[function]["file"]]["name"],
            "line": line,
        }
        for function, line in zip(columns["function"], columns["line"], strict=True)
    ]


def roots(document: dict[str, Any]) -> set[str]:
    """The functions at the bottom of a stack."""
    nodes, named = document["nodes"], frames(document)
    return {
        named[frame]["function"]
        for node, (parent, frame) in enumerate(zip(nodes["parent"], nodes["frame"], strict=True))
        if node > 0 and parent == 0
    }


def leaves(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    """Each span's leaf frame and its seconds; spans without a stack are left out."""
    spans, nodes, named = document["spans"], document["nodes"], frames(document)
    for node, length in zip(spans["node"], spans["length_us"], strict=True):
        if node > 0:
            yield named[nodes["frame"][node]], length / 1e6
