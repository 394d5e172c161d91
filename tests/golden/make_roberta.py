#!/usr/bin/env python3
"""Makes golden/roberta/ and golden/xlm-roberta/: tiny random checkpoints, one a head and more, and what transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_roberta.py

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
         "max_position_embeddings": 16,
         "bos_token_id": None, "eos_token_id": None}

# name: (head, class, changes of the configuration)
CASES = {
    "base": ("base", transformers.RobertaModel, {}),
    "masked-lm": ("masked-lm", transformers.RobertaForMaskedLM, {"hidden_act": "relu"}),
    "masked-lm-untied": ("masked-lm", transformers.RobertaForMaskedLM, {"tie_word_embeddings": False, "pad_token_id": 4}),
    "sequence-classification": ("sequence-classification", transformers.RobertaForSequenceClassification, {"num_labels": 3}),
    "token-classification": ("token-classification", transformers.RobertaForTokenClassification, {"num_labels": 5}),
    "question-answering": ("question-answering", transformers.RobertaForQuestionAnswering, {"type_vocab_size": 1}),
}


def main():
    for seed, (name, (head, cls, changes)) in enumerate(CASES.items(), 1):
        for folder, own in (("roberta", cls), ("xlm-roberta", getattr(transformers, "XLM" + cls.__name__))):
            config = own.config_class(**{**SIZES, **changes})
            hf.write_case(FOLDER / folder / name, hf.random_model(own, config, seed), head, seed)


if __name__ == "__main__":
    main()
