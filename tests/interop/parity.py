"""tzoo forward beside transformers: what the tests of all families share."""

import json
import os
import subprocess
import tempfile

import torch
from safetensors.torch import load_file


def tzoo(*words):
    return subprocess.run([os.environ["TZOO"], *words], capture_output=True, text=True, timeout=300)


def run_forward(test, directory, inputs, *words):
    """What tzoo forward writes for the tensors of `inputs`, each a flag of its name."""
    path = os.path.join(directory, "out.safetensors")
    flags = [word for name, value in inputs.items() for word in ("--" + name, json.dumps(value.tolist()))]
    done = tzoo("forward", "--model", directory, *flags, "--output", path, *words)
    test.assertEqual(done.returncode, 0, done.stderr)
    return load_file(path)


def padded_inputs(vocab_size, length, draw):
    """Three rows: one whole, one padded on the left, one on the right."""
    ids = torch.randint(vocab_size, (3, length))
    mask = torch.ones_like(ids)
    left, right = draw.randint(1, length - 3), draw.randint(1, length - 3)
    mask[1, :left] = 0
    mask[2, length - right:] = 0
    return ids, mask


def causal_inputs(vocab_size, length, draw):
    """With labels, none of which is predicted from a hidden query."""
    ids, mask = padded_inputs(vocab_size, length, draw)
    labels = ids.masked_fill(torch.rand(ids.shape) < 0.2, -100).masked_fill(mask == 0, -100)
    labels[1, :int((mask[1] == 0).sum()) + 1] = -100
    labels[0, 1] = ids[0, 1]  # there is one at least
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


LISTS = ("hidden_states", "attentions", "encoder_hidden_states", "decoder_hidden_states", "encoder_attentions",
         "decoder_attentions", "cross_attentions")


def expected_tensors(model, inputs, names=("logits",)):
    """What transformers computes, under the names that tzoo forward gives; gradients too if there are labels."""
    output = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    tensors = {name: output[name] for name in names}
    if "labels" in inputs:
        output.loss.backward()
        tensors["loss"] = output.loss
    for name in LISTS:
        tensors.update({f"{name}.{i}": tensor for i, tensor in enumerate(output.get(name) or ())})
    tensors.update({f"grad.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None})
    return {name: tensor.detach() for name, tensor in tensors.items()}


def without_hidden_queries(name, tensor, mask):
    """A causal query whose keys are all hidden has no answer: transformers spreads it evenly, the zoo gives zeros."""
    seen = mask.cumsum(-1) > 0
    if name.startswith("attentions."):
        return tensor * seen[:, None, :, None]
    if name.startswith("hidden_states.") or name in ("logits", "last_hidden_state"):
        return tensor * seen[:, :, None]
    return tensor


def relative_error(actual, expected):
    # Some gradients are zero by their nature (a key's bias moves no softmax): there what is left is rounding.
    return ((actual - expected).abs().max() / expected.abs().max().clamp_min(1e-6)).item()


class Worst:
    """The largest errors of a whole test, by kind of tensor."""

    def __init__(self, test):
        self.test, self.errors = test, {}

    def check(self, actual, expected, seed, mask=None):
        self.test.assertEqual(sorted(actual), sorted(expected))
        for name, tensor in expected.items():
            found = actual[name]
            self.test.assertEqual(found.shape, tensor.shape, name)
            if mask is not None:
                found, tensor = (without_hidden_queries(name, t, mask) for t in (found, tensor))
            error, kind = relative_error(found, tensor), name.split(".")[0]
            self.errors[kind] = max(self.errors.get(kind, (0, "")), (error, f"{name}, seed {seed}"))
            self.test.assertLessEqual(error, 1e-4 if kind == "grad" else 1e-5, name)

    def print(self):
        for kind, (error, where) in self.errors.items():
            print(f"{kind}: worst relative error {error:.1e} ({where})")


def saved(model, change=lambda directory: None):
    """The directory that transformers writes, for `with`."""
    directory = tempfile.TemporaryDirectory()
    model.save_pretrained(directory.name)
    change(directory.name)
    return directory
