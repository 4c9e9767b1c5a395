"""Prints how far profiles are from the truth: ``python -m truth [--repeat 30] [--scripts] [3.12 …] [--only TEXT]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from truth import cases, running
from truth.running import ENVIRONMENTS, Notebook, Results


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m truth", description=__doc__)
    parser.add_argument("environments", nargs="*", help="of .cache/kernels; all by default")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--scripts", action="store_true", help="as scripts by omni-perf run instead")
    parser.add_argument("--only", default="", help="cases with this text in their name")
    options = parser.parse_args()
    found = options.environments or sorted(path.parent.name for path in ENVIRONMENTS.glob("*/.complete"))
    wrong = 0
    for environment in found:
        results = measure(environment, options.repeat, options.scripts, options.only)
        right = sum(comparison.right for comparison in results.values())
        worst = max((comparison.variation for comparison in results.values()), default=0)
        samples = sum(comparison.samples for comparison in results.values())
        for name, comparison in results.items():
            print(f"{environment:<8}{name:<58}{'' if comparison.right else 'WRONG ':>6}{comparison}")
            if not comparison.right:
                print(comparison.table())
        print(
            f"{environment}: {right} of {len(results)} right, {samples} samples, largest variation {worst:.2%}\n",
            flush=True,
        )
        wrong += len(results) - right
    return 1 if wrong else 0


def measure(environment: str, repeat: int, scripts: bool, only: str) -> Results:
    results: Results = {}
    chosen = [
        case
        for case in cases.load()
        if only in case.name and all(running.has(environment, module) for module in case.needs)
    ]
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        place = Path(folder)
        if scripts:
            for _ in range(repeat):
                for case in chosen:
                    running.run_script(results, environment, case, place)
            return results
        with running.kernel(environment, place) as kernel:
            notebook = Notebook(kernel, place)
            for _ in range(repeat):
                for case in chosen:
                    running.run_cells(results, notebook, case)
    return results


if __name__ == "__main__":
    sys.exit(main())
