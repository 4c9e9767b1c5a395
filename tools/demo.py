"""Executes the example notebooks in real kernels and checks that they hold charts.

Writes NAME.ipynb and NAME.html into build/demo and prints their paths. Where there is no
NVIDIA GPU the training example gets a simulated one: a fake NVML library, compiled here.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
OUTPUT = ROOT / "build" / "demo"
FAKE_NVML = ROOT / "sidecar" / "measure" / "gpu" / "testdata" / "fakenvml"


def main() -> None:
    """Execute the notebooks named as arguments, by default all examples."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    OUTPUT.mkdir(parents=True, exist_ok=True)
    simulation = {} if _has_gpu() else _simulate_gpu()
    paths = [Path(name).resolve() for name in sys.argv[1:]] or sorted(EXAMPLES.glob("*.ipynb"))
    first: tuple[Path, Path] | None = None
    for path in paths:
        began = time.monotonic()
        print(f"{path.stem} … ", end="", flush=True)
        executed, page, charts = execute(path, simulation)
        print(f"{charts} charts, {time.monotonic() - began:.0f} s")
        print(f"  {executed}\n  {page}")
        if first is None or path.stem == "training":
            first = page, executed
    if first is not None:
        print(f"\nOpen first, in a browser and in Jupyter:\n  {first[0]}\n  {first[1]}")


def execute(path: Path, simulation: dict[str, str]) -> tuple[Path, Path, int]:
    """Run a notebook, write it and its page; end the program if a chart is missing.

    Only a notebook that drives the simulated GPU gets the environment of one.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook: Any = nbformat.read(path, as_version=4)
    simulated = any("simulated_" in cell.source for cell in notebook.cells)
    log = OUTPUT / path.with_suffix(".log").name  # what the kernel itself warns of, such as its ports
    with log.open("wb") as stderr:
        NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
        ).execute(env=os.environ | (simulation if simulated else {}), stderr=stderr)
    wanted = sum(cell.source.startswith("%%omni_perf") for cell in notebook.cells)
    charts = sum(map(_is_chart, (output for cell in notebook.cells for output in cell.get("outputs", []))))
    if charts < wanted:
        sys.exit(f"{path.name}: {wanted} cells are profiled, {charts} hold a chart.")
    executed, page = OUTPUT / path.name, OUTPUT / path.with_suffix(".html").name
    nbformat.write(notebook, executed)
    html, _ = HTMLExporter().from_notebook_node(notebook, resources={"metadata": {"name": path.stem}})
    page.write_text(html, encoding="utf-8")
    return executed, page, charts


def _is_chart(output: Any) -> bool:
    data = output.get("data", {})
    return output.output_type == "display_data" and "data:image/svg+xml" in data.get("text/html", "")


def _has_gpu() -> bool:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return nvml.nvmlInit_v2() == 0


def _simulate_gpu() -> dict[str, str]:
    """Build the fake NVML library; return the environment that lets a sidecar load it."""
    library, feed = ROOT / "build" / "libnvidia-ml.so.1", ROOT / "build" / "gpu.feed"
    subprocess.run([str(FAKE_NVML / "build.sh"), str(library)], check=True)
    feed.write_text("")
    print("There is no NVIDIA GPU here: the training example drives a simulated one.")
    return {"OMNI_PERF_NVML_LIBRARY": str(library), "OMNI_PERF_FAKE_NVML_FEED": str(feed)}


if __name__ == "__main__":
    main()
