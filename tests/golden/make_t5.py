#!/usr/bin/env python3
"""Makes golden/t5/: tiny random T5 checkpoints and what Hugging Face transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_t5.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
  input_ids, attention_mask, labels     the inputs; the first row is padded on the left, the second on the right
  logits, loss                          of those inputs, the decoder's ids being the labels shifted right
  encoder_hidden_states.N, decoder_hidden_states.N, encoder_attentions.N, decoder_attentions.N, cross_attentions.N
  grad.NAME                             of the loss, for each of named_parameters()
"""

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import T5Config, T5ForConditionalGeneration

from random_weights import randomize

FOLDER = pathlib.Path(__file__).parent / "t5"
COMMON = {"attn_implementation": "eager", "dropout_rate": 0.0, "decoder_start_token_id": 0}


def random_model(seed, scaled, **config):
    config = T5Config(**config, **COMMON)
    config.scale_decoder_outputs = scaled
    return randomize(T5ForConditionalGeneration(config), seed)


def untie(model):
    """transformers 5 ties what its files do not hold twice."""
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.3)
    model.all_tied_weights_keys.pop("lm_head.weight")
    model._tied_weights_keys = {k: v for k, v in model._tied_weights_keys.items() if k != "lm_head.weight"}
    return model


def inputs_of(model, source=7, target=6):
    ids = torch.randint(0, model.config.vocab_size, (2, source))
    mask = torch.ones(2, source, dtype=torch.long)
    mask[0, :2] = 0
    mask[1, source - 3:] = 0
    labels = torch.randint(0, model.config.vocab_size, (2, target))
    labels[0, target - 2:] = -100
    labels[1, 2] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


LISTS = ("encoder_hidden_states", "decoder_hidden_states", "encoder_attentions", "decoder_attentions", "cross_attentions")


def expected_of(model, inputs):
    output = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    output.loss.backward()
    tensors = dict(inputs, logits=output.logits, loss=output.loss)
    for name in LISTS:
        tensors.update({f"{name}.{i}": tensor for i, tensor in enumerate(output[name])})
    tensors.update({f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()})
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def write_case(name, model, change=lambda config: None):
    directory = FOLDER / name
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((directory / "config.json").read_text())
    change(config)
    (directory / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(expected_of(model, inputs_of(model)), directory / "expected.safetensors")
    print(name, sum(path.stat().st_size for path in directory.iterdir()), "bytes")


def as_transformers_4(config):
    """The keys that release 4 wrote for the same model."""
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.45.0"


def main():
    small = {"num_heads": 2, "d_model": 8, "d_kv": 5, "d_ff": 12, "vocab_size": 17,
             "relative_attention_num_buckets": 8, "relative_attention_max_distance": 6}
    # Version 1.0: ReLU, tied and scaled.
    write_case("tied", random_model(1, True, num_layers=2, **small), as_transformers_4)
    # Version 1.1 as release 4 wrote it, and as 5 does: gated, a projection of its own, not scaled; unequal depths.
    gelu = untie(random_model(2, False, num_layers=1, num_decoder_layers=2, feed_forward_proj="gated-gelu", **small))
    write_case("untied", gelu, as_transformers_4)
    silu = untie(random_model(3, False, num_layers=2, num_decoder_layers=1, feed_forward_proj="gated-silu", **small))
    write_case("release5", silu)


if __name__ == "__main__":
    main()
