#!/usr/bin/env python3
"""Makes golden/llama/: tiny random Llama checkpoints and what Hugging Face transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_llama.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
what `tzoo forward` takes (three rows: one whole, one padded on the left, one on the right) and what it writes.
"""

from golden_case import hf, write_case
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

NO_IDS = {"bos_token_id": None, "eos_token_id": None}


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.45.0"


def main():
    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12,
             "vocab_size": 17, "max_position_embeddings": 16, **NO_IDS}
    write_case("llama/plain", hf.random_model(LlamaForCausalLM, LlamaConfig(**small), 1), "causal-lm")
    # Grouped heads of their own size, every bias, tied; the llama3 scaling within so few positions that frequencies are
    # kept, lowered and in between.
    llama3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0,
              "high_freq_factor": 3.0, "original_max_position_embeddings": 32}
    grouped = LlamaConfig(num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, hidden_size=12, head_dim=8,
                          intermediate_size=20, vocab_size=19, max_position_embeddings=64, rope_parameters=llama3,
                          attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu",
                          rms_norm_eps=1e-3, **NO_IDS)
    write_case("llama/grouped", hf.random_model(LlamaForCausalLM, grouped, 2), "causal-lm")
    # As release 4 wrote it, and without its head: "embed_tokens.weight" instead of "model.embed_tokens.weight".
    linear = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.5}
    bare = hf.random_model(LlamaForCausalLM, LlamaConfig(**small, num_key_value_heads=1, rope_parameters=linear,
                                                         tie_word_embeddings=True), 3)
    write_case("llama/bare", bare, "causal-lm", bare.model, as_transformers_4)
    classifier = LlamaConfig(**small, pad_token_id=2, num_labels=3)
    write_case("llama/classifier", hf.random_model(LlamaForSequenceClassification, classifier, 4),
               "sequence-classification")


if __name__ == "__main__":
    main()
