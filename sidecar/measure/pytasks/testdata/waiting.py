"""The clock of tasks: for each function the times between which it waited."""

import sys
import time

WAITS = {}


class waits:
    """Notes what is between its begin and end as time in which the calling function waits."""

    def __enter__(self):
        self.function = sys._getframe(1).f_code.co_qualname
        self.begin = time.monotonic_ns()

    def __exit__(self, *_):
        WAITS.setdefault(self.function, []).append((self.begin, time.monotonic_ns()))
