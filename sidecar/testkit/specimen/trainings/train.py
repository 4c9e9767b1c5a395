"""A small training in one of several ways: train.py VARIANT STEP_MS SECONDS.

Host and device have known loads, as shares of the step, so that another cause is the first in each.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
import time

import torch
from devices import drive
from torch.utils.data import DataLoader, Dataset

VARIANT, STEP, SECONDS = sys.argv[1], float(sys.argv[2]) / 1000, float(sys.argv[3])
BATCH = 8


def compute(seconds):
    """Python code of the user's own that takes a while."""
    end = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < end:
        total += sum(i * i for i in range(20))
    return total


class Rows(Dataset):
    """Rows that take this long to make, a batch together."""

    def __init__(self, seconds, steps, sleeps=True):
        self.row = seconds / BATCH
        self.steps, self.sleeps = steps, sleeps

    def __len__(self):
        return BATCH * self.steps

    def __getitem__(self, number):
        if self.sleeps:
            time.sleep(self.row)
        elif self.row:
            compute(self.row)
        return torch.full((16,), number % 7 / 7), torch.ones(1)


def small(depth=1):
    layers = [torch.nn.Linear(16, 16) for _ in range(depth)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 1))


def steps():
    return int(SECONDS / STEP) + 1


def until():
    return time.monotonic() + SECONDS


def plain(workers=0, load=0.6):
    """The loop of the tutorial: the loader is what the device waits for."""
    network = small()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.35 * STEP)
    end = until()
    for features, wanted in DataLoader(Rows(load * STEP * max(workers, 1) ** 0.9, steps()), batch_size=BATCH, num_workers=workers):
        loss = torch.nn.functional.mse_loss(network(features), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        compute(0.05 * STEP)
        if time.monotonic() > end:
            break


def workers():
    """Two worker processes that do not keep up."""
    plain(2, 1.1)


def item():
    """Results are asked for in each step, and then worked on in Python."""
    network = small()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.45 * STEP)
    features, wanted = torch.ones(BATCH, 16), torch.ones(BATCH, 1)
    history, end = [], until()
    while time.monotonic() < end:
        loss = torch.nn.functional.mse_loss(network(features), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(loss.item())
        compute(0.4 * STEP)


def launches():
    """Many small layers: the device is faster than its launches."""
    network = small(max(int(STEP * 1000 * 9), 4))
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.3 * STEP)
    features, wanted = torch.ones(BATCH, 16), torch.ones(BATCH, 1)
    end = until()
    while time.monotonic() < end:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(network(features), wanted)
        loss.backward()
        optimizer.step()
        loss.item()


def accumulation():
    """Four batches for each step of the optimizer; the log is written in Python."""
    network = small()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.45 * STEP)
    end, log = until(), []
    for number, (features, wanted) in enumerate(DataLoader(Rows(0.1 * STEP, steps()), batch_size=BATCH)):
        loss = torch.nn.functional.mse_loss(network(features), wanted) / 4
        loss.backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
            log.append(loss.item())
            compute(1.4 * STEP)
        if time.monotonic() > end:
            break


def validation():
    """A validation after every 30 steps, whose metric is computed in Python."""
    network = small()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.5 * STEP)
    features, wanted = torch.ones(BATCH, 16), torch.ones(BATCH, 1)
    end, scores = until(), []
    while time.monotonic() < end:
        for _ in range(30):
            loss = torch.nn.functional.mse_loss(network(features), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            compute(0.2 * STEP)
            loss.item()
        with torch.no_grad():
            for _ in range(10):
                hits = network(features) > 0.5
                scores.append(hits.tolist())
                compute(0.9 * STEP)


def checkpoint():
    """A checkpoint after every few steps."""
    network = small()
    ballast = {str(i): torch.zeros(int(STEP * 3e7)) for i in range(10)}
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.6 * STEP)
    features, wanted = torch.ones(BATCH, 16), torch.ones(BATCH, 1)
    end = until()
    while time.monotonic() < end:
        for _ in range(6):
            loss = torch.nn.functional.mse_loss(network(features), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            compute(0.1 * STEP)
            loss.item()
        torch.save({"network": network.state_dict(), "ballast": ballast}, "last.pt")


def compiled():
    """torch.compile: the device waits for the compiler, then works."""
    network = small()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.6 * STEP)
    features, wanted = torch.ones(BATCH, 16), torch.ones(BATCH, 1)
    for _ in range(3):
        network(features).sum().backward()
        optimizer.step()
    faster = torch.compile(network)
    end, seconds = None, SECONDS / 4  # the compiler takes some
    while end is None or time.monotonic() < end:
        loss = torch.nn.functional.mse_loss(faster(features), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        compute(0.1 * STEP)
        end = end or time.monotonic() + seconds


def trainer():
    """transformers.Trainer over rows that are slow to make."""
    from transformers import Trainer, TrainingArguments

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(16, 1)

        def forward(self, features, labels):
            out = self.layer(features)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    class Named(Rows):
        def __getitem__(self, number):
            features, wanted = super().__getitem__(number)
            return {"features": features, "labels": wanted}

    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    drive(network, optimizer, 0.35 * STEP)
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=BATCH, max_steps=steps(), use_cpu=True, report_to=[], save_strategy="no",
        logging_steps=10, disable_tqdm=True, dataloader_num_workers=0,
    )
    Trainer(
        network, arguments, train_dataset=Named(0.6 * STEP, steps()), optimizers=(optimizer, None)
    ).train()


def lightning():
    """Lightning, with a callback of the user's that computes in Python."""
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = small()

        def training_step(self, batch, number):
            features, wanted = batch
            loss = torch.nn.functional.mse_loss(self.network(features), wanted)
            self.log("loss", loss)
            return loss

        def on_train_batch_end(self, outputs, batch, number):
            outputs["loss"].item()
            compute(0.4 * STEP)

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=1e-3)
            drive(self.network, optimizer, 0.35 * STEP)
            return optimizer

    L.Trainer(
        max_steps=steps(), accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, barebones=False,
    ).fit(Module(), DataLoader(Rows(0, steps()), batch_size=BATCH))


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[VARIANT]()
