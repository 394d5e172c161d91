#!/usr/bin/env python3
"""Makes golden/gpt2/: tiny random GPT-2 checkpoints, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_gpt2.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
  input_ids, attention_mask, …          the inputs: rows without padding, padded on the left, padded on the right
  logits (or start_logits, …), loss     of those inputs
  hidden_states.N, attentions.N         Hugging Face's indexing
  grad.NAME                             of the loss, for each of named_parameters()

A query whose keys are all hidden (the left padding under the causal mask) has no defined answer: transformers spreads
its attention evenly, the zoo gives zeros. Such rows must be left out of a comparison. No label is predicted from one,
so that loss and gradients do not depend on them.
"""

import pathlib
import sys

import transformers

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 17, "n_positions": 16, "bos_token_id": None,
         "eos_token_id": None}


def main():
    def write(name, head, cls, seed, saved=lambda model: model, **changes):
        model = hf.random_model(cls, transformers.GPT2Config(**{**SMALL, **changes}), seed)
        hf.write_case(FOLDER / "gpt2" / name, model, head, seed, saved(model))

    write("tied", "causal-lm", transformers.GPT2LMHeadModel, 1)
    write("untied", "causal-lm", transformers.GPT2LMHeadModel, 2, n_layer=3, n_head=4, n_embd=12, vocab_size=19,
          n_positions=11, n_inner=20, activation_function="gelu", layer_norm_epsilon=1e-3, tie_word_embeddings=False)
    # Saved without its head: "wte.weight" instead of "transformer.wte.weight". The expectations are the whole model's.
    write("bare", "causal-lm", transformers.GPT2LMHeadModel, 3, lambda model: model.transformer,
          activation_function="relu")
    write("base", "base", transformers.GPT2Model, 4)
    write("sequence-classification", "sequence-classification", transformers.GPT2ForSequenceClassification, 5,
          num_labels=3, pad_token_id=2)


if __name__ == "__main__":
    main()
