"""Goes over loaders and says when it asked for each batch, and what the loaders are."""

import json
import sys
import time

from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler


class Slow(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        end = time.monotonic() + 0.004
        while time.monotonic() < end:
            sum(range(100))
        return index


class Stream(IterableDataset):
    def __iter__(self):
        return (Slow(1)[0] for _ in range(60))


class Own(BatchSampler):
    pass


def go_over(log, loader, passes, take=10**9, **about):
    for _ in range(passes):
        asked, iterator = [], iter(loader)
        for _ in range(take):
            began = time.monotonic_ns()
            try:
                next(iterator)
            except StopIteration:
                asked.append([began, time.monotonic_ns()])
                break
            asked.append([began, time.monotonic_ns()])
            time.sleep(0.001)  # the training's step
        log.append(about | {"asked": asked})


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    log, data = [], Slow(70)
    go_over(log, DataLoader(data, batch_size=4, shuffle=True), 3, Batch=4, samples=70)
    go_over(log, DataLoader(data, batch_size=4, shuffle=True, drop_last=True), 1, Batch=4, DropLast=True, samples=70)
    go_over(log, DataLoader(data, batch_size=8), 2, take=5, Batch=8, samples=70)
    go_over(log, DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data, num_samples=30), 5, True)), 1, Batch=5, DropLast=True, samples=30)
    go_over(log, DataLoader(data, batch_sampler=BatchSampler([*range(40)], 5, False)), 1, Batch=5, samples=40)
    go_over(log, DataLoader(data, batch_sampler=Own(range(40), 5, False)), 1, Batch=0, samples=40)
    go_over(log, DataLoader(data, batch_size=None), 1, Batch=0)
    go_over(log, DataLoader(Stream(), batch_size=4), 1, Batch=4, Stream=True)
    go_over(log, DataLoader(data, batch_size=2, num_workers=2), 2, Batch=2, Workers=2, samples=70)
    go_over(log, DataLoader(data, batch_size=2, num_workers=2, persistent_workers=True), 3, Batch=2, Workers=2, samples=70)
    print(json.dumps(log), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
