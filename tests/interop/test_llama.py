"""tzoo forward and generate beside transformers, on random Llamas in every form that checkpoints have."""

import json
import os
import random
import sys
import unittest

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

import parity
from parity import tzoo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from random_weights import randomize  # noqa: E402

SEEDS = range(20)


def random_rope(draw):
    rope = {"rope_theta": draw.choice([100.0, 10000.0, 500000.0]), "rope_type": draw.choice(["default", "linear", "llama3"])}
    if rope["rope_type"] != "default":
        rope["factor"] = draw.choice([2.0, 3.5, 8.0])
    if rope["rope_type"] == "llama3":
        rope.update(low_freq_factor=draw.choice([1.0, 1.5]), high_freq_factor=draw.choice([2.0, 4.0]),
                    original_max_position_embeddings=draw.choice([16, 64, 8192]))
    return rope


def random_config(draw, **changes):
    heads = draw.choice([1, 2, 4, 6])
    config = dict(
        num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
        num_key_value_heads=draw.choice([n for n in (None, 1, 2, 3) if n is None or heads % n == 0]),
        hidden_size=heads * draw.choice([2, 4, 10]), head_dim=draw.choice([None, 2, 6, 16]),
        intermediate_size=draw.choice([7, 16, 33]), vocab_size=draw.randint(5, 90), max_position_embeddings=64,
        hidden_act=draw.choice(["silu", "gelu", "relu", "gelu_new", "gelu_pytorch_tanh"]),
        rms_norm_eps=draw.choice([1e-6, 1e-3]), rope_parameters=random_rope(draw),
        attention_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5, tie_word_embeddings=draw.random() < 0.5,
        attention_dropout=0.1,  # must not act outside of training
        bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    return LlamaConfig(**{**config, **changes})


def as_release_4(directory):
    """config.json with the keys of transformers 4."""
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    if config["rope_scaling"] and config["rope_scaling"]["rope_type"] == "linear":
        config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w") as file:
        json.dump(config, file)


class LlamaTest(unittest.TestCase):
    def test_random_models(self):
        worst = parity.Worst(self)
        for seed in SEEDS:
            draw = random.Random(seed)
            model = randomize(LlamaForCausalLM(random_config(draw)), seed)
            inputs = parity.causal_inputs(model.config.vocab_size, draw.randint(5, 30), draw)
            expected = parity.expected_tensors(model, inputs)
            # Every fourth without its head, whose names have no "model."; every third as release 4 writes it.
            bare = model.config.tie_word_embeddings and seed % 4 == 0
            with self.subTest(seed=seed), parity.saved(
                    model.model if bare else model, as_release_4 if seed % 3 == 0 else lambda _: None) as directory:
                words = ["--head", "causal-lm"] if bare else []
                actual = parity.run_forward(self, directory, inputs, "--gradients", *words)
                worst.check(actual, expected, seed, inputs["attention_mask"])
        worst.print()


if __name__ == "__main__":
    unittest.main()
