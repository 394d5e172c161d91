"""tzoo forward and generate beside transformers, on random T5s in every form that checkpoints have."""

import json
import os
import random
import sys
import unittest

import torch
from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Model

import parity
from parity import tzoo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from random_weights import randomize  # noqa: E402

SEEDS = range(20)


def random_config(draw, **changes):
    config = dict(
        num_layers=draw.choice([1, 2, 3]), num_decoder_layers=draw.choice([1, 2, 3]), num_heads=draw.choice([1, 2, 4]),
        d_model=draw.choice([8, 12, 32]), d_kv=draw.choice([3, 4, 8]), d_ff=draw.choice([7, 16, 33]),
        vocab_size=draw.randint(5, 90), relative_attention_num_buckets=draw.choice([4, 8, 32]),
        relative_attention_max_distance=draw.choice([17, 20, 128]), layer_norm_epsilon=draw.choice([1e-6, 1e-3]),
        feed_forward_proj=draw.choice(["relu", "gated-gelu", "gated-silu", "gated-relu", "gelu"]),
        dropout_rate=0.1,  # must not act outside of training
        decoder_start_token_id=draw.choice([0, 1, 3]), pad_token_id=draw.choice([0, 2]), eos_token_id=1,
        attn_implementation="eager")
    return T5Config(**{**config, **changes})


FORMS = ("tied", "untied", "untied in release 4", "tied, not scaled", "untied, scaled")


def random_model(seed, form, **changes):
    """The five ways to tie the output projection or not, and to scale the hidden state before it or not."""
    draw = random.Random(seed)
    config = random_config(draw, **changes)
    config.scale_decoder_outputs = form in ("tied", "untied, scaled")
    model = randomize(T5ForConditionalGeneration(config), seed, scale=0.2)
    if form.startswith("untied"):
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
        model.all_tied_weights_keys.pop("lm_head.weight", None)
        model._tied_weights_keys = {k: v for k, v in model._tied_weights_keys.items() if k != "lm_head.weight"}
    return model, draw


def as_release_4(directory):
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w") as file:
        json.dump(config, file)


def change_for(form):
    return as_release_4 if form in ("tied", "untied in release 4") else lambda directory: None


def random_inputs(config, draw, labels=True):
    ids, mask = parity.padded_inputs(config.vocab_size, draw.randint(5, 40), draw)
    targets = torch.randint(config.vocab_size, (3, draw.randint(1, 30)))
    if not labels:
        return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": targets}
    targets = targets.masked_fill(torch.rand(targets.shape) < 0.2, -100)
    targets[0, 0] = 4  # there is one at least
    inputs = {"input_ids": ids, "attention_mask": mask, "labels": targets}
    if draw.random() < 0.5:
        inputs["decoder_input_ids"] = torch.randint(config.vocab_size, targets.shape)
    return inputs


class T5Test(unittest.TestCase):
    def test_random_models(self):
        worst = parity.Worst(self)
        for seed in SEEDS:
            form = FORMS[seed % len(FORMS)]
            model, draw = random_model(seed, form)
            inputs = random_inputs(model.config, draw)
            expected = parity.expected_tensors(model, inputs)
            with self.subTest(seed=seed, form=form), parity.saved(model, change_for(form)) as directory:
                actual = parity.run_forward(self, directory, inputs, "--gradients")
                worst.check(actual, expected, seed)
        worst.print()


if __name__ == "__main__":
    unittest.main()
