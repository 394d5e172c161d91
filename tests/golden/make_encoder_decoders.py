#!/usr/bin/env python3
"""Makes the folders of golden/ of mT5, UMT5, BART and its relatives: tiny random checkpoints, and what transformers computes from
them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:
python make_encoder_decoders.py [FAMILY …]

The cases are as those of make_decoders.py, which says what they hold.
"""

import pathlib
import sys

import transformers as hub

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 8,
         "encoder_ffn_dim": 12, "decoder_ffn_dim": 12, "vocab_size": 17, "max_position_embeddings": 30, "pad_token_id": 1,
         "decoder_start_token_id": 2}
T5 = {"num_layers": 2, "num_decoder_layers": 1, "num_heads": 2, "d_model": 8, "d_kv": 5, "d_ff": 12, "vocab_size": 17,
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 6}
# folder: (name of the classes, class that generates, changes)
FAMILIES = {
    "bart": ("Bart", "BartForConditionalGeneration", {}),
    "mbart": ("MBart", "MBartForConditionalGeneration", {"scale_embedding": True}),
    "pegasus": ("Pegasus", "PegasusForConditionalGeneration", {"scale_embedding": True, "activation_function": "relu"}),
    "mt5": ("MT5", "MT5ForConditionalGeneration", {}),
    "umt5": ("UMT5", "UMT5ForConditionalGeneration", {}),
    "m2m_100": ("M2M100", "M2M100ForConditionalGeneration", {}),
    "marian": ("Marian", "MarianMTModel", {"scale_embedding": True, "activation_function": "swish"}),
}


def main():
    for family in sys.argv[1:] or FAMILIES:
        name, generator, changes = FAMILIES[family]
        config = getattr(hub, name + "Config")(**(T5 if family in ("mt5", "umt5") else SMALL), **changes)
        heads = {"seq2seq-lm": generator, "base": name + "Model"}
        if family in ("bart", "mbart"):
            heads |= {"sequence-classification": name + "ForSequenceClassification",
                      "question-answering": name + "ForQuestionAnswering"}
        for seed, (head, cls) in enumerate(heads.items(), 1):
            model = hf.random_model(getattr(hub, cls), config, seed)
            hf.write_case(FOLDER / family / head, model, head, seed, model)


if __name__ == "__main__":
    main()
