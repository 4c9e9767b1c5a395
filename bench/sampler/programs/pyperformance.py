"""Runs one of pyperformance's benchmarks round by round, without pyperf.

OMNI_PERF_BENCHMARK is the path of its run_benchmark.py. A stand-in for pyperf.Runner takes the function
that the benchmark registers.
"""

import argparse
import os
import runpy
import sys
import time
import types

import harness


class Runner:
    registered = None

    def __init__(self, *_args, **_settings):
        self.metadata = {}
        self.argparser = argparse.ArgumentParser()

    def parse_args(self):
        return self.argparser.parse_args([])

    def bench_func(self, _name, function, *arguments, **_settings):
        Runner.registered = lambda: function(*arguments)

    def bench_time_func(self, _name, function, *arguments, **_settings):
        Runner.registered = lambda: function(1, *arguments)


pyperf = types.ModuleType("pyperf")
pyperf.Runner = Runner
pyperf.perf_counter = time.perf_counter
sys.modules["pyperf"] = pyperf
runpy.run_path(os.environ["OMNI_PERF_BENCHMARK"], run_name="__main__")
harness.drive(Runner.registered)
