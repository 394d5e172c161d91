#!/usr/bin/env python3
"""Makes golden/qwen2/: tiny random Qwen2s, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_qwen2.py

The cases are as those of make_gpt2.py, which says what they hold.
"""

import pathlib
import sys

import transformers
from transformers import Qwen2Config

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16, "bos_token_id": None, "eos_token_id": None}


def main():
    def write(name, head, cls, seed, **changes):
        model = hf.random_model(cls, Qwen2Config(**{**SMALL, **changes}), seed)
        hf.write_case(FOLDER / "qwen2" / name, model, head, seed, model)

    write("causal-lm", "causal-lm", transformers.Qwen2ForCausalLM, 1, num_key_value_heads=2)
    write("grouped", "causal-lm", transformers.Qwen2ForCausalLM, 2, num_hidden_layers=3, num_attention_heads=4,
          num_key_value_heads=2, hidden_size=16, intermediate_size=20, vocab_size=19, max_position_embeddings=64,
          tie_word_embeddings=True, rms_norm_eps=1e-3)
    write("base", "base", transformers.Qwen2Model, 3, num_key_value_heads=1)
    write("sequence-classification", "sequence-classification", transformers.Qwen2ForSequenceClassification, 4,
          num_key_value_heads=2, num_labels=3, pad_token_id=2)


if __name__ == "__main__":
    main()
