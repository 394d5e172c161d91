#!/usr/bin/env python3
"""Makes golden/optimizers/: what torch.optim's optimizers make of fixed gradients.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_optimizers.py

NAME.safetensors holds matrix.N and vector.N, the weights after N updates (0: before the first), and
matrix.gradient.N, vector.gradient.N, the gradients of update N. The learning rate is 0.05; matrices are decayed by 0.1.

Cautious weight decay (Chen et al., 2025) is of half as much in each update as in the one before, to tell its shares apart.

Muon's matrices are iterated in float64 instead of bfloat16, whose rounding would decide their digits; AdamW updates the vector.
"""

import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "optimizers"
UPDATES, RATE, DECAY = 5, 0.05, 0.1


class Muon:
    def __init__(self, groups, adjust_lr_fn):
        self.muon = torch.optim.Muon(groups[0]["params"], lr=RATE, weight_decay=groups[0]["weight_decay"], momentum=0.7, adjust_lr_fn=adjust_lr_fn)
        self.others = torch.optim.AdamW(groups[1:], lr=RATE, betas=(0.8, 0.95), eps=1e-6)

    def step(self):
        rounded, torch.Tensor.bfloat16 = torch.Tensor.bfloat16, lambda tensor: tensor.double().clone()
        self.muon.step()
        torch.Tensor.bfloat16 = rounded
        self.others.step()


class Cautious:
    """A weight decays if the optimizer's own step does not grow it."""

    def __init__(self, make, groups):
        self.decayed, self.decay = groups[0]["params"], groups[0]["weight_decay"]
        self.optimizer = make([groups[0] | {"weight_decay": 0.0}, *groups[1:]])

    def step(self):
        before = [weight.clone() for weight in self.decayed]
        self.optimizer.step()
        for weight, old in zip(self.decayed, before):
            weight -= RATE * self.decay * old * ((weight - old) * old <= 0)
        self.decay /= 2


OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=RATE, betas=(0.8, 0.95), eps=1e-6),
    "adafactor": lambda groups: torch.optim.Adafactor(groups, lr=RATE),
    "muon_original": lambda groups: Muon(groups, "original"),
    "muon_match_rms_adamw": lambda groups: Muon(groups, "match_rms_adamw"),
    "adamw_cautious": lambda groups: Cautious(OPTIMIZERS["adamw"], groups),
    "muon_cautious": lambda groups: Cautious(OPTIMIZERS["muon_original"], groups),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=RATE, momentum=0.7),
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, make in OPTIMIZERS.items():
        torch.manual_seed(1)
        weights = {"matrix": torch.randn(3, 4), "vector": torch.randn(5)}
        tensors = {f"{key}.0": weight.clone() for key, weight in weights.items()}
        optimizer = make([{"params": [weights["matrix"]], "weight_decay": DECAY}, {"params": [weights["vector"]], "weight_decay": 0.0}])
        for update in range(UPDATES):
            for key, weight in weights.items():
                weight.grad = torch.randn_like(weight) * 3 ** update
                tensors[f"{key}.gradient.{update}"] = weight.grad.clone()
            optimizer.step()
            tensors.update({f"{key}.{update + 1}": weight.clone() for key, weight in weights.items()})
        save_file(tensors, FOLDER / f"{name}.safetensors")


if __name__ == "__main__":
    main()
