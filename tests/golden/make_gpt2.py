#!/usr/bin/env python3
"""Makes golden/gpt2/: tiny random GPT-2 checkpoints and what Hugging Face transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_gpt2.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
  input_ids, attention_mask, labels     the inputs; the first row is padded on the left, the second on the right
  logits, loss                          of those inputs, positions 0, 1, … whatever the mask
  hidden_states.N, attentions.N         Hugging Face's indexing
  grad.NAME                             of the loss, for each of named_parameters()

A query whose keys are all hidden (the left padding under the causal mask) has no defined answer: transformers spreads
its attention evenly, the zoo gives zeros. Such rows must be left out of a comparison. No label is predicted from one,
so that loss and gradients do not depend on them.
"""

import pathlib

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = pathlib.Path(__file__).parent / "gpt2"
COMMON = {"attn_implementation": "eager", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
          "bos_token_id": None, "eos_token_id": None}


def random_model(seed, **config):
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(GPT2Config(**config, **COMMON)).eval()
    with torch.no_grad():  # the initial biases are zero and the norms' weights one: they would hide mistakes
        for name, parameter in model.named_parameters():
            is_norm_weight = ".ln_" in name and name.endswith(".weight")
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1.0 if is_norm_weight else 0.0))
    return model


def inputs_of(model, length=7):
    ids = torch.randint(0, model.config.vocab_size, (2, length))
    mask = torch.ones(2, length, dtype=torch.long)
    mask[0, :2] = 0
    mask[1, length - 3:] = 0
    labels = ids.clone()
    labels[0, :3] = -100  # the label at 2 would be predicted from position 1, which is hidden
    labels[1, length - 3:] = -100
    labels[1, 2] = -100  # and one that is ignored amid the others
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def expected_of(model, inputs):
    output = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    output.loss.backward()
    tensors = dict(inputs, logits=output.logits, loss=output.loss)
    tensors.update({f"hidden_states.{i}": tensor for i, tensor in enumerate(output.hidden_states)})
    tensors.update({f"attentions.{i}": tensor for i, tensor in enumerate(output.attentions)})
    tensors.update({f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()})
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def write_case(name, model, saved):
    directory = FOLDER / name
    saved.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    save_file(expected_of(model, inputs_of(model)), directory / "expected.safetensors")
    print(name, sum(path.stat().st_size for path in directory.iterdir()), "bytes")


def main():
    small = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 17, "n_positions": 16}
    tied = random_model(1, **small, activation_function="gelu_new")
    write_case("tied", tied, tied)
    untied = random_model(2, n_layer=3, n_head=4, n_embd=12, vocab_size=19, n_positions=11, n_inner=20,
                          activation_function="gelu", layer_norm_epsilon=1e-3, tie_word_embeddings=False)
    write_case("untied", untied, untied)
    # Saved without its head: "wte.weight" instead of "transformer.wte.weight". The expectations are the whole model's.
    bare = random_model(3, **small, activation_function="relu")
    write_case("bare", bare, bare.transformer)


if __name__ == "__main__":
    main()
