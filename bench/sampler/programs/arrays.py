"""What a numpy program does: few Python lines, long C calls.

One BLAS thread, for a second leaves no core free. OMNI_PERF_LIBRARIES is the folder that numpy lies in.
"""

import os
import sys

import harness

sys.path.insert(0, os.environ["OMNI_PERF_LIBRARIES"])
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy

RANDOM = numpy.random.default_rng(1)
INPUT = RANDOM.standard_normal((256, 64))
WEIGHTS = [RANDOM.standard_normal((64, 64)) * 0.1 for _ in range(3)]


def forward(x):
    for weights in WEIGHTS:
        x = numpy.maximum(x @ weights, 0)
    return x


def statistics(x):
    return float(x.mean()), float(numpy.sort(x, axis=None)[x.size // 2])


def one_round():
    statistics(forward(INPUT))


harness.drive(one_round)
