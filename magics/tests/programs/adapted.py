"""Short trainings in one process, each by a framework's own loop with omni_perf's adapter for it."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS, BATCH = 24, 4


class Rows(Dataset):
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int):
        return {"x": torch.rand(8), "labels": torch.tensor(index % 3)}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}


def trainer() -> None:
    from omni_perf.adapters.transformers import Profile
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        tempfile.mkdtemp(), per_device_train_batch_size=BATCH, num_train_epochs=2, gradient_accumulation_steps=2,
        report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    Trainer(Net(), arguments, train_dataset=Rows(), callbacks=[Profile()]).train()


def lightning() -> None:
    import lightning.pytorch as pl
    from omni_perf.adapters.lightning import Callbacks, Profile

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return self.net(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Report(pl.Callback):
        def on_train_batch_end(self, *_: object) -> None:
            pass

    pl.Trainer(
        max_epochs=2, accumulate_grad_batches=2, accelerator="cpu", callbacks=[Report(), Profile()], profiler=Callbacks(),
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    ).fit(Module(), DataLoader(Rows(), batch_size=BATCH))  # fmt: skip


def accelerate() -> None:
    from accelerate import Accelerator
    from omni_perf.adapters.accelerate import batches

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = Net()
    net, optimizer, loader = accelerator.prepare(
        net, torch.optim.SGD(net.parameters(), lr=0.1), DataLoader(Rows(), batch_size=BATCH)
    )
    for epoch in range(2):
        for batch in batches(accelerator, loader, epoch):
            with accelerator.accumulate(net):
                accelerator.backward(net(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()


def composer() -> None:
    from composer import Algorithm, Callback, ComposerModel, Event, Trainer
    from omni_perf.adapters.composer import Profile

    class Model(ComposerModel):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def forward(self, batch):
            return self.net(**batch)

        def loss(self, outputs, batch):
            return outputs["loss"]

    class Report(Callback):
        def batch_end(self, state, logger) -> None:
            pass

    class Smooth(Algorithm):
        def match(self, event, state) -> bool:
            return event == Event.AFTER_FORWARD

        def apply(self, event, state, logger) -> None:
            pass

    model = Model()
    trainer = Trainer(
        model=model, train_dataloader=DataLoader(Rows(), batch_size=2 * BATCH), device_train_microbatch_size=BATCH, max_duration="2ep",
        optimizers=torch.optim.SGD(model.parameters(), lr=0.1), callbacks=[Report(), Profile()], algorithms=[Smooth()], device="cpu",
        progress_bar=False, log_to_console=False,
    )  # fmt: skip
    trainer.fit()
    trainer.close()
    assert trainer.state.profiler is None


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"trainer": trainer, "lightning": lightning, "accelerate": accelerate, "composer": composer}[sys.argv[1]]()
