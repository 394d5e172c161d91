#!/usr/bin/env python3
"""Makes golden/t5/: tiny random T5 checkpoints and what Hugging Face transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_t5.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
what `tzoo forward` takes (three rows: one whole, one padded on the left, one on the right) and what it writes.
"""

import torch
from golden_case import hf, write_case
from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Model

SMALL = {"num_heads": 2, "d_model": 8, "d_kv": 5, "d_ff": 12, "vocab_size": 17, "relative_attention_num_buckets": 8,
         "relative_attention_max_distance": 6, "decoder_start_token_id": 0}


def random_model(cls, seed, scaled, **config):
    config = T5Config(**SMALL, **config)
    config.scale_decoder_outputs = scaled
    return hf.random_model(cls, config, seed)


def untied(model):
    """Release 5 of transformers ties what its files do not hold twice."""
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
    model.all_tied_weights_keys.pop("lm_head.weight")
    model._tied_weights_keys = {k: v for k, v in model._tied_weights_keys.items() if k != "lm_head.weight"}
    return model


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.45.0"


def main():
    # Version 1.0: ReLU, tied and scaled. The labels are shifted right; in the third case there are ids as well.
    tied = random_model(T5ForConditionalGeneration, 1, True, num_layers=2)
    write_case("t5/tied", tied, "seq2seq-lm", change=as_transformers_4)
    # Version 1.1 as release 4 wrote it, and as 5 does: gated, a projection of its own, not scaled; unequal depths.
    gelu = random_model(T5ForConditionalGeneration, 3, False, num_layers=1, num_decoder_layers=2,
                        feed_forward_proj="gated-gelu")
    write_case("t5/untied", untied(gelu), "seq2seq-lm", change=as_transformers_4)
    silu = random_model(T5ForConditionalGeneration, 8, False, num_layers=2, num_decoder_layers=1,
                        feed_forward_proj="gated-silu")
    write_case("t5/release5", untied(silu), "seq2seq-lm")
    write_case("t5/bare", random_model(T5Model, 5, True, num_layers=1), "base")
    write_case("t5/encoder", random_model(T5EncoderModel, 6, True, num_layers=2), "base")


if __name__ == "__main__":
    main()
