#!/usr/bin/env python3
"""Makes golden/llama/: tiny random Llama checkpoints and what Hugging Face transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_llama.py

The cases and their expected.safetensors are as those of make_gpt2.py, which says what they hold.
"""

import json
import pathlib

from transformers import LlamaConfig, LlamaForCausalLM

from make_gpt2 import expected_of, inputs_of
from random_weights import randomize

FOLDER = pathlib.Path(__file__).parent / "llama"
COMMON = {"attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}


def random_model(seed, **config):
    return randomize(LlamaForCausalLM(LlamaConfig(**config, **COMMON)), seed)


def write_case(name, model, saved, change=lambda config: None):
    from safetensors.torch import save_file

    directory = FOLDER / name
    saved.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((directory / "config.json").read_text())
    change(config)
    (directory / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(expected_of(model, inputs_of(model)), directory / "expected.safetensors")
    print(name, sum(path.stat().st_size for path in directory.iterdir()), "bytes")


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.45.0"


def main():
    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12,
             "vocab_size": 17, "max_position_embeddings": 16}
    plain = random_model(1, **small)
    write_case("plain", plain, plain)
    # Grouped heads of their own size, every bias, tied; the llama3 scaling within so few positions that every frequency
    # is treated in another way.
    llama3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
              "original_max_position_embeddings": 32}
    grouped = random_model(2, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, hidden_size=12,
                           head_dim=8, intermediate_size=20, vocab_size=19, max_position_embeddings=64,
                           rope_parameters=llama3, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                           hidden_act="gelu", rms_norm_eps=1e-3)
    write_case("grouped", grouped, grouped)
    # As release 4 wrote it, and without its head: "embed_tokens.weight" instead of "model.embed_tokens.weight".
    linear = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.5}
    bare = random_model(3, **small, num_key_value_heads=1, rope_parameters=linear, tie_word_embeddings=True)
    write_case("bare", bare, bare.model, as_transformers_4)


if __name__ == "__main__":
    main()
