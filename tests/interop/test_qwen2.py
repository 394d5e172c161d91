"""tzoo forward and export beside transformers: random Qwen2 models."""

import unittest

import transformers
from forward_parity import ForwardParity, hf
from generation_parity import GenerationParity
from test_llama import random_rope
from transformers import Qwen2Config


class Qwen2Test(ForwardParity, GenerationParity, unittest.TestCase):
    HEADS = {
        "causal-lm": transformers.Qwen2ForCausalLM,
        "base": transformers.Qwen2Model,
        "sequence-classification": transformers.Qwen2ForSequenceClassification,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 4, 6])
        return Qwen2Config(
            num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
            num_key_value_heads=draw.choice([n for n in (1, 2, 3) if heads % n == 0]),
            hidden_size=heads * draw.choice([2, 4, 10]), intermediate_size=draw.choice([7, 16, 33]),
            vocab_size=draw.randint(6, 90), max_position_embeddings=31, hidden_act=draw.choice(["silu", "gelu", "relu"]),
            rms_norm_eps=draw.choice([1e-6, 1e-3]), rope_parameters=random_rope(draw),
            tie_word_embeddings=draw.random() < 0.5, pad_token_id=draw.choice([0, 3]), num_labels=draw.choice([1, 2, 5]),
            attention_dropout=0.1,  # must not act outside of training
            bos_token_id=None, eos_token_id=None)

    def save(self, model, head, directory, seed):
        model.save_pretrained(directory)
        return []

    def generator(self, seed):
        config = Qwen2Config(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=[1, 2, 4][seed % 3], hidden_size=32,
            intermediate_size=40, vocab_size=61, max_position_embeddings=64, tie_word_embeddings=seed % 2 == 1,
            bos_token_id=None, eos_token_id=None)
        return hf.random_model(transformers.Qwen2ForCausalLM, config, seed)


if __name__ == "__main__":
    unittest.main()
