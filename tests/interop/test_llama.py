"""tzoo forward and export beside transformers: random Llamas in every form that checkpoints have."""

import json
import os
import unittest

import transformers
from forward_parity import ForwardParity, hf
from generation_parity import GenerationParity
from transformers import LlamaConfig


def random_rope(draw):
    kind = draw.choice(["default", "linear", "llama3", "yarn"])
    rope = {"rope_theta": draw.choice([100.0, 10000.0, 500000.0]), "rope_type": kind}
    if kind != "default":
        rope["factor"] = draw.choice([2.0, 3.5, 8.0])
    if kind == "llama3":  # within so few positions that frequencies are treated in every way
        rope.update(low_freq_factor=draw.choice([1.0, 1.5]), high_freq_factor=draw.choice([2.0, 4.0]),
                    original_max_position_embeddings=draw.choice([8, 20, 30]))
    if kind == "yarn":
        rope.update(original_max_position_embeddings=draw.choice([8, 20, 30]), truncate=draw.random() < 0.5,
                    beta_fast=draw.choice([4.0, 32.0]), beta_slow=draw.choice([0.5, 1.0]),
                    attention_factor=draw.choice([None, 0.9]), mscale=draw.choice([None, 0.7]), mscale_all_dim=0.8)
    return rope


def as_release_4(directory, draw_type):
    """config.json with the keys of transformers 4, of which the oldest said "type" for "rope_type"."""
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    if config["rope_scaling"] and draw_type:
        config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


class LlamaTest(ForwardParity, GenerationParity, unittest.TestCase):
    HEADS = {
        "causal-lm": transformers.LlamaForCausalLM,
        "base": transformers.LlamaModel,
        "sequence-classification": transformers.LlamaForSequenceClassification,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 4, 6])
        return LlamaConfig(
            num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
            num_key_value_heads=draw.choice([n for n in (None, 1, 2, 3) if n is None or heads % n == 0]),
            hidden_size=heads * draw.choice([2, 4, 10]), head_dim=draw.choice([None, 2, 6, 16]),
            intermediate_size=draw.choice([7, 16, 33]), vocab_size=draw.randint(6, 90), max_position_embeddings=31,
            hidden_act=draw.choice(["silu", "gelu", "relu", "gelu_new", "gelu_pytorch_tanh"]),
            rms_norm_eps=draw.choice([1e-6, 1e-3]), rope_parameters=random_rope(draw),
            attention_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5,
            tie_word_embeddings=draw.random() < 0.5, pad_token_id=draw.choice([0, 3]), num_labels=draw.choice([1, 2, 5]),
            attention_dropout=0.1,  # must not act outside of training
            bos_token_id=None, eos_token_id=None)

    def save(self, model, head, directory, seed):
        # Every other one without its head, whose names have no "model."; most as release 4 writes them.
        bare = head == "causal-lm" and model.config.tie_word_embeddings and seed % 2 == 0
        (model.model if bare else model).save_pretrained(directory)
        if seed % 3 != 0:
            as_release_4(directory, seed % 3 == 1)
        return ["--head", "causal-lm"] if bare else []

    def generator(self, seed):
        rope = [{"rope_theta": 10000.0, "rope_type": "default"},
                {"rope_theta": 500.0, "rope_type": "linear", "factor": 3.0},
                {"rope_theta": 500.0, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                 "high_freq_factor": 3.0, "original_max_position_embeddings": 16}]
        config = LlamaConfig(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=[1, 2, 4][seed % 3], hidden_size=32,
            head_dim=[8, 12][seed % 2], intermediate_size=40, vocab_size=61, max_position_embeddings=64,
            rope_parameters=rope[seed % 3], attention_bias=seed % 2 == 0, tie_word_embeddings=seed % 2 == 1,
            bos_token_id=None, eos_token_id=None)
        return hf.random_model(transformers.LlamaForCausalLM, config, seed)


if __name__ == "__main__":
    unittest.main()
