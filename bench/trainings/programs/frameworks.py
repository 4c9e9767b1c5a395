"""The same small training by a framework's own loop: frameworks.py trainer|lightning|accelerate [--workers N]."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import time

import torch
from clocked import Clock
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("framework", choices=["trainer", "lightning", "accelerate"])
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--own", action="store_true", help="the framework's own figures, too")


class Rows(Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        time.sleep(0.001)
        return {"x": torch.rand(512), "labels": torch.tensor(index % 10)}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        )

    def forward(self, x, labels):
        out = self.layers(x)
        return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}


def trainer(clock: Clock, options: argparse.Namespace) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Ends(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            clock.step(16)

    arguments = TrainingArguments(
        "out", per_device_train_batch_size=16, num_train_epochs=1, report_to=[], save_strategy="no", use_cpu=True,
        dataloader_num_workers=options.workers, disable_tqdm=True, logging_steps=1000,
    )  # fmt: skip
    done = Trainer(Net(), arguments, train_dataset=Rows(16 * options.steps), callbacks=[Ends()]).train()
    if options.own:
        clock.facts["own"] = done.metrics


def lightning(clock: Clock, options: argparse.Namespace) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return self.net(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    class Ends(lightning.Callback):
        def on_train_batch_end(self, *_: object, **__: object) -> None:
            clock.step(16)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    if options.own:
        from lightning.pytorch.profilers import SimpleProfiler

        quiet["profiler"] = profiler = SimpleProfiler()
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", callbacks=[Ends()], **quiet)
    trainer.fit(Module(), DataLoader(Rows(16 * options.steps), batch_size=16, num_workers=options.workers))
    if options.own:
        clock.facts["own"] = {name: sum(times) for name, times in profiler.recorded_durations.items()}


def accelerate(clock: Clock, options: argparse.Namespace) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = Net()
    loader = DataLoader(Rows(16 * options.steps), batch_size=16, num_workers=options.workers)
    net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters()), loader)
    for batch in loader:
        optimizer.zero_grad()
        accelerator.backward(net(**batch)["loss"])
        optimizer.step()
        clock.step(16)


if __name__ == "__main__":
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = Clock().at_exit()
    {"trainer": trainer, "lightning": lightning, "accelerate": accelerate}[options.framework](clock, options)
