#!/usr/bin/env python3
"""Makes golden/masking.json: which ids and labels transformers' collator makes of fixed random draws.

Run by hand, with the Python of third_party/interop, when the fixture has to change:  python make_masking.py

The collator draws with torch.bernoulli and torch.randint; the draws are recorded on their way. "chosen", "masked" and
"random" are its three draws for each token, "random_ids" the fourth.
"""

import json
import pathlib

import torch
import transformers

ROWS, WIDTH, VOCABULARY, MASK, SPECIAL = 4, 24, 50, 4, 5  # ids below SPECIAL are special tokens


class Tokenizer:
    """As much of a tokenizer as the collator asks for."""

    mask_token, mask_token_id = "[MASK]", MASK

    def __len__(self):
        return VOCABULARY

    def get_special_tokens_mask(self, ids, already_has_special_tokens):
        return [int(i < SPECIAL) for i in ids]

    def convert_tokens_to_ids(self, token):
        return MASK


def main():
    torch.manual_seed(7)
    draws = {"bernoulli": [], "randint": []}

    def recorded(name, draw):
        def call(*arguments, **keywords):
            draws[name].append(draw(*arguments, **keywords))
            return draws[name][-1]

        return call

    ids = torch.randint(SPECIAL, VOCABULARY, (ROWS, WIDTH))
    ids[:, 0], ids[:, -1] = 2, 3
    original = ids.tolist()
    collator = transformers.DataCollatorForLanguageModeling.__new__(transformers.DataCollatorForLanguageModeling)
    for key, value in {"tokenizer": Tokenizer(), "mlm_probability": 0.3, "mask_replace_prob": 0.8, "random_replace_prob": 0.1,
                       "generator": None, "seed": None, "whole_word_mask": False}.items():
        setattr(collator, key, value)
    torch.bernoulli, torch.randint = recorded("bernoulli", torch.bernoulli), recorded("randint", torch.randint)
    masked, labels = collator.torch_mask_tokens(ids)
    chosen, mask, random = (draw.long().tolist() for draw in draws["bernoulli"])
    fixture = {"ids": original, "chosen": chosen, "masked": mask, "random": random, "random_ids": draws["randint"][0].tolist(),
               "mask_id": MASK, "expected_ids": masked.tolist(), "expected_labels": labels.tolist()}
    (pathlib.Path(__file__).parent / "masking.json").write_text(json.dumps(fixture) + "\n")


if __name__ == "__main__":
    main()
