"""Goes over loaders whose attributes are not those of torch: name by name, what is wrong and for how long."""

import contextlib
import json
import sys
import time

from torch.utils.data import DataLoader, Dataset


class Number(int):
    pass


class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.03)
        return index


class Dictless:
    __slots__ = ("batch_size",)


class BatchSampler(list):
    batch_size = 4


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    log = []
    for name, values in {
        "_num_yielded": ["7", -1, 2**80, None, 1.5, Number(3), [], object()],
        "_base_seed": ["7", -1, 2**80, None],
        "_num_workers": ["x", -2, 2**40],
        "_dataset_kind": [2, "map", None],
        "_index_sampler": [None, 7, Dictless(), BatchSampler()],
        "_sampler_iter": [iter("ab"), iter([[1], [2]]), (n for n in ([1], [2]))],
    }.items():
        for value in values:
            iterator = iter(DataLoader(Slow(), batch_size=2))
            setattr(iterator, name, value)
            began = time.monotonic_ns()
            with contextlib.suppress(Exception):
                next(iterator)
            log.append({"name": name, "began": began, "ended": time.monotonic_ns()})
    print(json.dumps(log), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
