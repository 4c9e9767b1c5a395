"""The same small training, of steps that are compiled as a whole: compiled.py linen|nnx|keras [--steps N]."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from clocked import Clock

BATCH, ROW, CLASSES = 64, 784, 10


def batches(count: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches that take a while to be made."""
    random = np.random.default_rng(0)
    for _ in range(count):
        x = random.random((BATCH, ROW), dtype=np.float32)
        time.sleep(0.004)
        yield x, random.integers(0, CLASSES, BATCH)


def train(clock: Clock, step: Callable[[Any, Any], Any], steps: int) -> None:
    """Train as one does: what a step gives is waited for. The first one, which is compiled, is not in the clock."""
    for batch in batches(1):
        step(*batch)
    for batch in clock.data(batches(steps)):
        clock.of("compiled_step", step)(*batch)


def linen(clock: Clock, steps: int) -> None:
    import jax
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (1024, 1024, CLASSES):
                x = nn.Dense(width)(nn.relu(x))
            return x

    net = Net()
    params = net.init(jax.random.key(0), np.ones((1, ROW), np.float32))["params"]
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))

    @jax.jit
    def train_step(state, x, y):
        def loss_of(params):
            logits = state.apply_fn({"params": params}, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, gradients = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=gradients), loss

    def step(x, y):
        nonlocal state
        state, loss = train_step(state, x, y)
        return float(loss)

    train(clock, step, steps)


def nnx(clock: Clock, steps: int) -> None:
    import jax
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(ROW, 2048, rngs=rngs), nnx.Linear(2048, CLASSES, rngs=rngs)

        def __call__(self, x):
            return self.second(jax.nn.relu(self.first(x)))

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adamw(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(net, optimizer, x, y):
        def loss_of(net):
            return optax.softmax_cross_entropy_with_integer_labels(net(x), y).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(net)
        optimizer.update(net, gradients)
        return loss

    train(clock, lambda x, y: float(train_step(net, optimizer, x, y)), steps)


def keras(clock: Clock, steps: int) -> None:
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    class Times(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.began = time.perf_counter()

        def on_train_batch_end(self, batch, logs=None):
            if batch:  # the first is compiled
                clock.add("compiled_step", time.perf_counter() - self.began)

    layers = keras.layers
    net = keras.Sequential([layers.Input((ROW,)), layers.Dense(2048, activation="relu"), layers.Dense(CLASSES)])
    net.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.rand(BATCH * steps, ROW).astype(np.float32), np.random.randint(0, CLASSES, BATCH * steps)
    net.fit(x, y, batch_size=BATCH, epochs=1, verbose=0, callbacks=[Times()])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=["linen", "nnx", "keras"])
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    clock = Clock().at_exit()
    {"linen": linen, "nnx": nnx, "keras": keras}[options.framework](clock, options.steps)
