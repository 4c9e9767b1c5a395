"""Goes over loaders whose workers' queue it fills itself, and says from when to when how many batches were in it."""

import json
import multiprocessing
import queue
import sys
import time
from types import SimpleNamespace

from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter


class Slow(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.03)
        return index


class _FewDataLoaderIter(_SingleProcessDataLoaderIter):
    """An iterator with so few attributes that they are in the object."""

    def __init__(self, loader):
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._worker_result_queue = self._data_queue = multiprocessing.get_context("fork").Queue()
        self._tasks_outstanding = 1


def go_over(log, iterator, *sizes, pinned=0, known=True):
    for size in sizes:
        next(iterator)
        ready = iterator._worker_result_queue
        if known:
            while ready.qsize() > size:
                ready.get()
            while ready.qsize() < size:
                ready.put(None)
            if pinned:
                iterator._data_queue.queue.extend(range(pinned))
        began = time.monotonic_ns()
        time.sleep(0.08)
        log.append({"began": began, "ended": time.monotonic_ns(), "ready": size + pinned if known else -1})
        if known and pinned:
            iterator._data_queue.queue.clear()
    next(iterator)
    time.sleep(0.05)  # so that it is seen to go on


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    log, loader = [], DataLoader(Slow(), num_workers=2, prefetch_factor=3)
    iterator = iter(loader)
    go_over(log, iterator, 0, 6, 1, 3)
    go_over(log, _FewDataLoaderIter(loader), 2, 0, 5)
    for size in 1, 4:
        go_over(log, iter(loader), size)  # at the address of the one before, perhaps
    go_over(log, iter(DataLoader(Slow(), num_workers=2, pin_memory=True)), 0, 1, 0, pinned=3)

    time.sleep(0.1)
    full = iter(loader)
    go_over(log, full, 6, 6)
    began = time.monotonic_ns()
    time.sleep(0.1)  # nobody goes on with it
    log.append({"began": began, "ended": time.monotonic_ns(), "ready": -1})

    others = multiprocessing.get_context("fork")
    for name, values in {
        "_worker_result_queue": [None, 7, queue.Queue(), others.Queue(3), others.SimpleQueue(), SimpleNamespace(_sem=None)],
        "_data_queue": [None, 7, SimpleNamespace(queue=[]), SimpleNamespace(queue=None)],
        "_tasks_outstanding": [0, "7", None, -1],
        "_prefetch_factor": [None, 0, -1, 2**40],
        "_base_seed": [None, "7"],
    }.items():
        for value in values:
            iterator = iter(loader)
            setattr(iterator, name, value)
            go_over(log, iterator, 0, known=False)
    iterator = iter(loader)
    for _ in range(7):  # more than the workers are asked for
        iterator._worker_result_queue.put(None)
    go_over(log, iterator, 7, known=False)
    print(json.dumps(log), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
