#!/usr/bin/env python3
"""Makes golden/bert/: tiny random BERT checkpoints, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_bert.py

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

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16}

# name: (head, class, changes of the configuration)
CASES = {
    "base": ("base", transformers.BertModel, {"hidden_act": "relu"}),
    "masked-lm": ("masked-lm", transformers.BertForMaskedLM, {}),
    "masked-lm-untied": ("masked-lm", transformers.BertForMaskedLM, {"tie_word_embeddings": False, "hidden_act": "gelu_new"}),
    "next-sentence": ("next-sentence", transformers.BertForNextSentencePrediction, {"type_vocab_size": 3}),
    "sequence-classification": ("sequence-classification", transformers.BertForSequenceClassification, {"num_labels": 3}),
    "regression": ("sequence-classification", transformers.BertForSequenceClassification, {"num_labels": 1, "pad_token_id": 3}),
    "multi-label": ("sequence-classification", transformers.BertForSequenceClassification, {"num_labels": 4, "problem_type": "multi_label_classification"}),
    "token-classification": ("token-classification", transformers.BertForTokenClassification, {"num_labels": 5, "hidden_act": "silu"}),
    "question-answering": ("question-answering", transformers.BertForQuestionAnswering, {"layer_norm_eps": 1e-3}),
    "pretraining": ("pretraining", transformers.BertForPreTraining, {}),
}


def main():
    for seed, (name, (head, cls, changes)) in enumerate(CASES.items(), 1):
        config = transformers.BertConfig(**{**SIZES, **changes})
        hf.write_case(FOLDER / "bert" / name, hf.random_model(cls, config, seed), head, seed)


if __name__ == "__main__":
    main()
