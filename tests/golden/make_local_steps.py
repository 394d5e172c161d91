#!/usr/bin/env python3
"""Makes golden/local_steps.safetensors: DiLoCo by hand in PyTorch.

Run by hand, with the Python of third_party/interop, when the fixture has to change:  python make_local_steps.py

The module and its points are those of tests/training/own_module.h, in float64. Two ranks make 3 rounds of 4 updates with AdamW and clipped
gradients; rank r's update u learns the points [100 u + 6 r, 100 u + 6 r + 6). After each round torch.optim.SGD with Nesterov's momentum
moves the common weights by the mean difference. NAME.R are the common weights after R rounds, NAME.local.RANK those of a rank inside of the
third round, after 10 updates.
"""

import pathlib

import torch
from safetensors.torch import save_file

ROUNDS, STEPS, RANKS, RATE = 3, 4, 2, 0.05
OUTER_RATE, OUTER_MOMENTUM = 0.6, 0.8
SHAPES = {"first.weight": (8, 1), "first.bias": (8,), "second.weight": (1, 8), "second.bias": (1,)}


def initial():
    weights = {}
    for seed, (name, shape) in enumerate(SHAPES.items(), start=1):
        count = torch.Size(shape).numel()
        weights[name] = torch.nn.Parameter(((torch.arange(count) + seed).float() * 0.7).sin().double().view(shape))
    return weights


def loss(weights, first):
    x = (torch.arange(first, first + 6).float() * 0.37).cos().double().view(-1, 1)
    hidden = torch.tanh(x @ weights["first.weight"].T + weights["first.bias"])
    return ((hidden @ weights["second.weight"].T + weights["second.bias"] - x.sin()) ** 2).mean()


def main():
    common = initial()
    outer = torch.optim.SGD(common.values(), lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True)
    local = [initial() for _ in range(RANKS)]
    inner = [torch.optim.AdamW([{"params": [w for w in weights.values() if w.dim() > 1], "weight_decay": 0.1},
                                {"params": [w for w in weights.values() if w.dim() < 2], "weight_decay": 0.0}],
                               lr=RATE, betas=(0.9, 0.95), eps=1e-3) for weights in local]
    tensors = {}
    for round in range(ROUNDS):
        for rank, (weights, optimizer) in enumerate(zip(local, inner)):
            for name, weight in weights.items():
                weight.data.copy_(common[name].data)
            for update in range(round * STEPS, (round + 1) * STEPS):
                optimizer.zero_grad()
                loss(weights, 100 * update + 6 * rank).backward()
                torch.nn.utils.clip_grad_norm_(weights.values(), 0.2)
                optimizer.step()
                if update == 9:
                    tensors.update({f"{name}.local.{rank}": weight.data.clone() for name, weight in weights.items()})
        for name, weight in common.items():
            weight.grad = sum(weight.data - weights[name].data for weights in local) / RANKS
        outer.step()
        tensors.update({f"{name}.{round + 1}": weight.data.clone() for name, weight in common.items()})
    save_file(tensors, pathlib.Path(__file__).parent / "local_steps.safetensors")


if __name__ == "__main__":
    main()
