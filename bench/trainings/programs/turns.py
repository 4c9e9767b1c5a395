"""A loop that trains and validates by turns, as PyTorch's tutorial of transfer learning has it."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import time

import torch
from clocked import Clock
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    clock = Clock().at_exit()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loaders = {
        phase: DataLoader(TensorDataset(torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,))), batch_size=16)
        for phase, count in (("train", 640), ("val", 480))
    }
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4),
        nn.Flatten(), nn.Linear(2048, 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    forward = clock.of("forward", model)
    for epoch in range(4):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            began = time.perf_counter()
            running_loss = 0.0
            batches = clock.data(loaders[phase]) if phase == "train" else loaders[phase]
            for inputs, labels in batches:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = forward(inputs) if phase == "train" else model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        clock.of("backward", loss.backward)()
                        clock.of("optimizer", optimizer.step)()
                        clock.step(len(inputs), epoch)
                running_loss += loss.item() * len(inputs)
            if phase == "val":
                clock.add("evaluation", time.perf_counter() - began)
            print(f"{epoch} {phase} {running_loss / len(loaders[phase]):.3f}")


if __name__ == "__main__":
    main()
