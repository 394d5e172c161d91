#!/usr/bin/env python3
"""Makes golden/llama/: tiny random Llamas, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_llama.py

The cases are as those of make_gpt2.py, which says what they hold.
"""

import pathlib
import sys

import transformers
from transformers import LlamaConfig

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16, "bos_token_id": None, "eos_token_id": None}


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")


def main():
    def write(name, head, cls, seed, saved=lambda model: model, change=lambda config: None, **changes):
        model = hf.random_model(cls, LlamaConfig(**{**SMALL, **changes}), seed)
        hf.write_case(FOLDER / "llama" / name, model, head, seed, saved(model), change)

    write("plain", "causal-lm", transformers.LlamaForCausalLM, 1)
    # Grouped heads of their own size, every bias, tied; the llama3 scaling within so few positions that frequencies are
    # kept, lowered and in between.
    llama3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0,
              "high_freq_factor": 3.0, "original_max_position_embeddings": 32}
    write("grouped", "causal-lm", transformers.LlamaForCausalLM, 2, num_hidden_layers=3, num_attention_heads=4,
          num_key_value_heads=2, hidden_size=12, head_dim=8, intermediate_size=20, vocab_size=19,
          max_position_embeddings=64, rope_parameters=llama3, attention_bias=True, mlp_bias=True,
          tie_word_embeddings=True, hidden_act="gelu", rms_norm_eps=1e-3)
    # As release 4 wrote it, and without its head: "embed_tokens.weight" instead of "model.embed_tokens.weight".
    linear = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.5}
    write("bare", "causal-lm", transformers.LlamaForCausalLM, 3, lambda model: model.model, as_transformers_4,
          num_key_value_heads=1, rope_parameters=linear, tie_word_embeddings=True)
    write("base", "base", transformers.LlamaModel, 4, pad_token_id=3)
    write("sequence-classification", "sequence-classification", transformers.LlamaForSequenceClassification, 5,
          num_labels=3, pad_token_id=2)


if __name__ == "__main__":
    main()
