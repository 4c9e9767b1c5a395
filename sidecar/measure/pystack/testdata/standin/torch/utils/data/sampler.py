"""What torch's samplers have that is read of them."""

import itertools
import random


class SequentialSampler:
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))


class RandomSampler:
    def __init__(self, data_source, num_samples=None):
        self.data_source = data_source
        self._num_samples = num_samples

    def __iter__(self):
        n = len(self.data_source)
        yield from random.sample(range(n), self._num_samples or n)


class BatchSampler:
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        sampler_iter = iter(self.sampler)
        while batch := [*itertools.islice(sampler_iter, self.batch_size)]:
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch
