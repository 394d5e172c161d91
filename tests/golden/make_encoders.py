#!/usr/bin/env python3
"""Makes the folders of golden/ of ModernBERT, ELECTRA, MPNet, DeBERTa and Nomic BERT: tiny random checkpoints, one a head and more, and what
transformers computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_encoders.py [FAMILY …]

The cases are as those of make_bert.py, which says what they hold.
"""

import pathlib
import sys

import transformers as hub

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16}
HEADS = {"base": "Model", "masked-lm": "ForMaskedLM", "sequence-classification": "ForSequenceClassification",
         "token-classification": "ForTokenClassification", "question-answering": "ForQuestionAnswering"}
# The window of a padded row's last token holds one that is not padding: what it computes is defined.
MODERN = {"pad_token_id": 3, "local_attention": 6, "bos_token_id": None, "eos_token_id": None, "cls_token_id": None,
          "sep_token_id": None}
# folder: (name of the classes, changes, more cases: their head and changes)
FAMILIES = {
    "modernbert": ("ModernBert", MODERN, {
        "biases": ("masked-lm", {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}),
        "mean": ("sequence-classification", {"classifier_pooling": "mean", "num_labels": 3}),
        "windows": ("base", {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "num_hidden_layers": 3,
                             "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
                                                 "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}}),
    }),
    "electra": ("Electra", {"embedding_size": 6}, {
        "replaced-tokens": ("replaced-tokens", {"hidden_act": "relu"}),
        "one-width": ("masked-lm", {"embedding_size": 8, "tie_word_embeddings": False}),
    }),
    "mpnet": ("MPNet", {"bos_token_id": None, "eos_token_id": None}, {
        "masked-lm-untied": ("masked-lm", {"tie_word_embeddings": False}),
    }),
    "deberta-v2": ("DebertaV2", {"relative_attention": True, "share_att_key": True, "norm_rel_ebd": "layer_norm",
                              "position_biased_input": False, "pos_att_type": "p2c|c2p", "position_buckets": 4}, {
        "masked-lm-untied": ("masked-lm", {"tie_word_embeddings": False, "type_vocab_size": 2, "max_relative_positions": 9}),
    }),
    "nomic_bert": ("NomicBert", {"hidden_dropout_prob": 0.1}, {}),
}


def main():
    for family in sys.argv[1:] or FAMILIES:
        name, changes, more = FAMILIES[family]
        cases = {head: (head, {}) for head in HEADS} | more
        for seed, (case, (head, other)) in enumerate(cases.items(), 1):
            config = getattr(hub, name + "Config")(**{**SIZES, **changes, **other})
            cls = getattr(hub, name + HEADS.get(head, "ForPreTraining"), None)
            if cls is None:
                continue
            hf.write_case(FOLDER / family / case, hf.random_model(cls, config, seed), head, seed)


if __name__ == "__main__":
    main()
