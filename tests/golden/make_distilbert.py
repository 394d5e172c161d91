#!/usr/bin/env python3
"""Makes golden/distilbert/: tiny random DistilBERT checkpoints, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_distilbert.py

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
  input_ids, attention_mask, …          the inputs: rows without padding, padded on the left, padded on the right
  logits (or start_logits, …), loss     of those inputs
  hidden_states.N, attentions.N         Hugging Face's indexing
  grad.NAME                             of the loss, for each of named_parameters()
"""

import pathlib
import sys

import transformers

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SIZES = {"n_layers": 2, "n_heads": 2, "dim": 8, "hidden_dim": 12, "vocab_size": 17, "max_position_embeddings": 16}

# name: (head, class, changes of the configuration)
CASES = {
    "base": ("base", transformers.DistilBertModel, {"sinusoidal_pos_embds": True}),
    "masked-lm": ("masked-lm", transformers.DistilBertForMaskedLM, {}),
    "masked-lm-untied": ("masked-lm", transformers.DistilBertForMaskedLM, {"tie_word_embeddings": False, "activation": "relu"}),
    "sequence-classification": ("sequence-classification", transformers.DistilBertForSequenceClassification, {"num_labels": 3}),
    "token-classification": ("token-classification", transformers.DistilBertForTokenClassification, {"num_labels": 5}),
    "question-answering": ("question-answering", transformers.DistilBertForQuestionAnswering, {"pad_token_id": 2}),
}


def main():
    for seed, (name, (head, cls, changes)) in enumerate(CASES.items(), 1):
        config = transformers.DistilBertConfig(**{**SIZES, **changes})
        hf.write_case(FOLDER / "distilbert" / name, hf.random_model(cls, config, seed), head, seed)


if __name__ == "__main__":
    main()
