#!/usr/bin/env python3
"""Makes golden/t5/: tiny random T5s, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_t5.py

The cases are as those of make_gpt2.py, which says what they hold.
"""

import pathlib
import sys

import torch
import transformers
from transformers import T5Config

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"num_layers": 2, "num_heads": 2, "d_model": 8, "d_kv": 5, "d_ff": 12, "vocab_size": 17,
         "relative_attention_num_buckets": 8, "relative_attention_max_distance": 6, "decoder_start_token_id": 0}


def untie(model):
    """Release 5 of transformers ties what its files do not hold twice."""
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
    model.all_tied_weights_keys.pop("lm_head.weight")
    model._tied_weights_keys = {k: v for k, v in model._tied_weights_keys.items() if k != "lm_head.weight"}


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    config["torch_dtype"] = config.pop("dtype")


def main():
    def write(name, head, cls, seed, scaled=True, change=lambda config: None, **changes):
        config = T5Config(**{**SMALL, **changes})
        config.scale_decoder_outputs = scaled
        model = hf.random_model(cls, config, seed)
        if not scaled:
            untie(model)
        hf.write_case(FOLDER / "t5" / name, model, head, seed, change=change)

    whole = transformers.T5ForConditionalGeneration
    # Version 1.0: ReLU, tied and scaled.
    write("tied", "seq2seq-lm", whole, 1, change=as_transformers_4)
    # Version 1.1 as release 4 wrote it, and as 5 does: gated, a projection of its own, not scaled; unequal depths.
    write("untied", "seq2seq-lm", whole, 3, False, as_transformers_4, num_layers=1, num_decoder_layers=2,
          feed_forward_proj="gated-gelu")
    write("release5", "seq2seq-lm", whole, 8, False, num_decoder_layers=1, feed_forward_proj="gated-silu")
    write("base", "base", transformers.T5Model, 5, num_layers=1)
    write("encoder", "base", transformers.T5EncoderModel, 6)


if __name__ == "__main__":
    main()
