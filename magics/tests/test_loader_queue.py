"""How many batches lie ready in the queue of a loader's workers, beside what a thread of the program counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from omni_perf.document import tables
from torches import need_torch, trained, version

pytestmark = pytest.mark.timed

LOOP = '''\
import json, threading, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils import pin_memory

torch.set_num_threads(1)

def pretend_to_pin():
    """Have torch's thread that pins batches, without an accelerator to pin them for."""
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.set_device_index = lambda index: None
    pin_memory.pin_memory = lambda data, device=None: data

class Rows(Dataset):
    def __init__(self, takes):
        self.takes = takes
    def __len__(self):
        return 16 * 60
    def __getitem__(self, index):
        time.sleep(self.takes)
        return torch.rand(64), index % 10

def train(takes, step, epochs=2, **options):
    if options.get("pin_memory"):
        pretend_to_pin()
    loader = DataLoader(Rows(takes), batch_size=16, **options)
    net = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    counted, now, stepped = [], [None], False

    def count():
        while now:
            iterator = now[0]
            if stepped and iterator is not None and iterator._tasks_outstanding:
                queues = {iterator._worker_result_queue, iterator._data_queue}
                counted.append(sum(queue.qsize() for queue in queues))
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(epochs):
        iterator = iter(loader)
        now[0] = iterator if loader.num_workers else None
        for x, y in iterator:
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            stepped = True
            optimizer.zero_grad()
            time.sleep(step)
        now[0] = None
        time.sleep(0.3)  # the queue of workers that stay is empty, and nobody waits
    now.clear()
    thread.join()
    with open("counted.json", "w") as file:
        json.dump(counted, file)

if __name__ == "__main__":
    train(OPTIONS)
'''


def ran(place: Path, options: str) -> tuple[dict[str, Any], list[int]]:
    """Return the row of the loader, and the batches in its queue as the program counted them, from time to time."""
    report = trained(place, LOOP.replace("OPTIONS", options))
    [row] = tables(report)["loaders"]
    return row, json.loads((place / "counted.json").read_text())


@pytest.mark.parametrize(
    ("options", "lowest", "highest"),
    [
        ("0.003, 0.001, num_workers=2", 0, 0.1),  # as shares of what there can be
        ("0.0001, 0.03, num_workers=2, prefetch_factor=3, persistent_workers=True", 0.75, 1),
        ("0.0001, 0.03, num_workers=2, multiprocessing_context='spawn'", 0.3, 1),
        ("0.001, 0.015, num_workers=2, prefetch_factor=4", 0.3, 1),
        ("0.003, 0.02, num_workers=2, persistent_workers=True", 0, 0.7),
        ("0.0001, 0.03, num_workers=2, pin_memory=True", 0.6, 1),
    ],
)
def test_batches_that_lie_ready(tmp_path: Path, options: str, lowest: float, highest: float) -> None:
    need_torch()
    if "pin_memory" in options and version() < (2, 15):
        pytest.skip("torch's thread is not one that this test can have pretend to pin")
    row, counted = ran(tmp_path, options)
    mean, most = sum(counted) / len(counted), row["ready_most"]
    assert most == (6 if "=3" in options else 8 if "=4" in options else 4)
    assert abs(row["ready_mean"] - mean) < 0.1 * most
    assert abs(row["ready_median"] - sorted(counted)[len(counted) // 2]) <= 1
    assert abs(row["queue_empty"] - counted.count(0) / len(counted)) < 0.15
    assert lowest * most <= row["ready_mean"] <= highest * most


def test_a_loader_without_workers_has_no_queue(tmp_path: Path) -> None:
    row, _ = ran(tmp_path, "0.0005, 0.005")
    assert row["steps"] > 0
    assert [row[name] for name in ("ready_mean", "ready_median", "ready_most", "queue_empty")] == [None] * 4
