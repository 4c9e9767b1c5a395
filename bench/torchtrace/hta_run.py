"""Run HolisticTraceAnalysis once on a folder: `hta_run.py FOLDER RANK…`, prints seconds.

Importing HTA is not counted.
"""

import sys
import time

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    folder, ranks = sys.argv[1], [int(rank) for rank in sys.argv[2:]]
    start = time.perf_counter()
    analysis = TraceAnalysis(trace_dir=folder)
    analysis.get_temporal_breakdown(visualize=False)
    for rank in ranks:
        analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1_000_000_000)
    print(f"\nseconds {time.perf_counter() - start:.4f}")


if __name__ == "__main__":
    main()
