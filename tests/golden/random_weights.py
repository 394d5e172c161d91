"""Weights for models of which nothing shall be hidden."""

import torch


def randomize(model, seed, scale=0.3):
    """Spreads every parameter wide: initial biases of zero and norms of one would hide mistakes."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name and name.endswith(".weight")
            parameter.copy_(torch.randn_like(parameter) * scale + (1.0 if is_norm else 0.0))
    return model.eval()
