"""What torch's loader has that is read of it: the same functions and attributes, without torch."""

import contextlib
import itertools
import multiprocessing
import queue
import random

from .sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False, num_workers=0, drop_last=False, batch_sampler=None, persistent_workers=False,
                 pin_memory=False, prefetch_factor=2):
        self.dataset = dataset
        self.pin_memory = pin_memory
        self.prefetch_factor = prefetch_factor
        self.num_workers = num_workers
        self.persistent_workers = persistent_workers
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            sampler = (RandomSampler if shuffle else SequentialSampler)(dataset)
            if not hasattr(dataset, "__getitem__"):
                sampler = itertools.repeat(None)
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.batch_sampler = batch_sampler
        self._iterator = None

    def __iter__(self):
        if self.persistent_workers and self.num_workers:
            if self._iterator is None:
                self._iterator = _MultiProcessingDataLoaderIter(self)
            else:
                self._iterator._reset(self)
            return self._iterator
        return (_MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter)(self)


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._dataset = loader.dataset
        self._index_sampler = loader.batch_sampler or SequentialSampler(loader.dataset)
        self._dataset_kind = int(not hasattr(loader.dataset, "__getitem__"))
        self._drop_last = loader.drop_last
        self._num_workers = loader.num_workers
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = random.getrandbits(63)
        self._num_yielded = 0
        self._profile_name = "next"

    def __iter__(self):
        return self

    def _reset(self, loader):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0

    def __next__(self):
        with contextlib.nullcontext(self._profile_name):
            data = self._next_data()
            self._num_yielded += 1
            return data


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._stream = iter(loader.dataset) if self._dataset_kind else None

    def _next_data(self):
        index = next(self._sampler_iter)
        if self._stream is not None:
            return [next(self._stream) for _ in index]
        return [self._dataset[i] for i in (index if isinstance(index, list) else [index])]


class _MultiProcessingDataLoaderIter(_SingleProcessDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        for n in range(30):  # more attributes than share their names with other objects
            setattr(self, f"_one_of_many_{n}", n)
        self._prefetch_factor = loader.prefetch_factor
        self._worker_result_queue = multiprocessing.get_context("fork").Queue()
        self._data_queue = queue.Queue() if loader.pin_memory else self._worker_result_queue
        self._tasks_outstanding = 1

    def _next_data(self):
        index = next(self._sampler_iter)
        return [self._dataset[i] for i in index]
