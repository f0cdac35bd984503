"""A data-parallel GPT as a rank program: each rank has its own rows, gradients are averaged."""

from __future__ import annotations

import numpy as np

from distlearn.comm import Communicator
from distlearn.nn import AdamW, Context, ModelConfig, accumulate, build

BATCH, STEPS = 8, 50
CONFIG = ModelConfig(layers=2, hidden=32, heads=4, vocab=61, seq=16, dropout=0.1)


async def train(comm: Communicator, steps: int = STEPS) -> tuple[list[float], float]:
    """Losses of all steps and the weights' sum of squares; the same on every rank."""
    model = build(CONFIG)
    params = model.init(seed=1, dtype=np.float64)
    optimizer = AdamW(lr=3e-3, weight_decay=0.1)
    state = optimizer.init(params)
    rows = BATCH // comm.size
    mine = slice(comm.rank * rows, (comm.rank + 1) * rows)
    text = np.random.default_rng(2).integers(0, CONFIG.vocab, (steps, BATCH, CONFIG.seq + 1))
    text[:, :, 1::2] = text[:, :, :-1:2]  # every second token repeats: something to learn
    losses = []
    for step in range(steps):
        ids, targets = text[step, mine, :-1], text[step, mine, 1:]
        context = Context(seed=3, step=step, first_sample=mine.start)
        loss, grads = accumulate(model, params, ids, targets, context=context)
        bucket = np.concatenate([[loss], *(gradient.ravel() for gradient in grads.values())])
        bucket = await comm.all_reduce(bucket, "mean")  # one message instead of one a parameter
        losses.append(float(bucket[0]))
        start = 1
        for name, gradient in grads.items():
            grads[name] = bucket[start : start + gradient.size].reshape(gradient.shape)
            start += gradient.size
        optimizer.update(params, grads, state)
    return losses, sum(float(np.sum(w * w)) for w in params.values())
