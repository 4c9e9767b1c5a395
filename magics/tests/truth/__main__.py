"""Prints how far profiles are from the truth: ``python -m truth [--repeat 30] [--scripts] [3.12 …] [--only TEXT]``.

With ``--samples NUMBER`` cases that are short of it after all repetitions run on until they have as many.
With ``--invented NUMBER`` the cases are as many that chance has made, from ``--seed`` on.
With ``--keep FOLDER`` what was measured is kept there, and a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from truth import cases, invented, kept, running
from truth.cases import Case
from truth.kept import Kept
from truth.running import ENVIRONMENTS, Notebook, Results


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m truth", description="How far profiles are from the truth.")
    parser.add_argument("environments", nargs="*", help="of .cache/kernels; all by default")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--samples", type=int, default=0, help="at least, of each case")
    parser.add_argument("--scripts", action="store_true", help="as scripts by omni-perf run instead")
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--invented", type=int, default=0, help="cases by chance in place of those of cells/")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--keep", type=Path, help="folder for what each repetition adds; goes on with what is there")
    options = parser.parse_args()
    if options.keep and (options.only or options.invented):
        parser.error("--keep counts the repetitions of all cases; --only chooses some, --invented others")
    build = kept.build() if options.keep else ""
    found = options.environments or sorted(path.parent.name for path in ENVIRONMENTS.glob("*/.complete"))
    wrong = 0
    for environment in found:
        name = f"{environment}{'-scripts' if options.scripts else ''}.json"
        so_far = Kept(options.keep / name, build) if options.keep else None
        results = measure(environment, options, so_far)
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


def load(options: argparse.Namespace) -> list[Case]:
    if options.invented:
        return [invented.case(options.seed + number) for number in range(options.invented)]
    return cases.load()


def measure(environment: str, options: argparse.Namespace, so_far: Kept | None) -> Results:
    results: Results = so_far.results if so_far else {}
    chosen = [
        case
        for case in load(options)
        if options.only in case.name and all(running.has(environment, module) for module in case.needs)
    ]

    def each(run: Callable[[Case], object]) -> None:
        for _ in range(so_far.repetitions if so_far else 0, options.repeat):
            for case in chosen:
                run(case)
            if so_far:
                so_far.count()
        for case in chosen:
            while case.name in results and results[case.name].samples < options.samples:
                run(case)
        if so_far:
            so_far.keep()

    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        place = Path(folder)
        if options.scripts:
            each(lambda case: running.run_script(results, environment, case, place))
            return results
        with running.kernel(environment, place) as kernel:
            notebook = Notebook(kernel, place)
            each(lambda case: running.run_cells(results, notebook, case))
    return results


if __name__ == "__main__":
    sys.exit(main())
