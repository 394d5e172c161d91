#!/usr/bin/env python3
"""Prints the figures of Hugging Face that stand in models/generation_test.cpp and apps/test_generate_verb.py.

    python tests/golden/make_generation.py      (needs torch and transformers)
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "apps"))
from tiny_checkpoint import write_checkpoint  # noqa: E402

# Two rows; ties at 1.5 in the first, a flat second.
LOGITS = torch.tensor(
    [[1.5, -0.25, 3.0, 1.5, 0.5, 1.5, -2.0, 2.25], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]]
)

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3, 5, 8, 9, 7]]


def warpers():
    from transformers.generation import logits_process as p

    for warper in (
        [p.TemperatureLogitsWarper(0.7)],
        [p.TopKLogitsWarper(3)],
        [p.TopKLogitsWarper(100)],
        [p.TopPLogitsWarper(0.6)],
        [p.TopPLogitsWarper(0.0)],
        [p.TemperatureLogitsWarper(0.7), p.TopKLogitsWarper(3), p.TopPLogitsWarper(0.7)],
        [p.MinPLogitsWarper(0.3)],
        [p.MinPLogitsWarper(1.0)],
        [p.TypicalLogitsWarper(0.5)],
        [p.TypicalLogitsWarper(0.95)],
    ):
        scores = LOGITS
        for step in warper:
            scores = step(None, scores)
        print([(type(w).__name__, vars(w)) for w in warper])
        print(torch.where(scores.isinf(), torch.tensor(-99.0), scores).numpy().round(6).tolist())


def processors():
    """What looks at the tokens of a row: two rows, of which the last two tokens are new. 2 and 7 end a text."""
    from transformers.generation import logits_process as p

    rows = torch.tensor([[2, 5, 1, 5, 1], [3, 3, 0, 3, 3]])
    for chosen in (
        [p.RepetitionPenaltyLogitsProcessor(1.5)],
        [p.NoRepeatNGramLogitsProcessor(2)],
        [p.NoRepeatNGramLogitsProcessor(1)],
        [p.NoBadWordsLogitsProcessor([[4], [5, 1, 6], [3, 3, 3, 0], [7], [1, 2]], [2, 7])],
        [p.MinLengthLogitsProcessor(6, [2, 7])],
        [p.MinLengthLogitsProcessor(5, [2, 7])],
        [p.MinNewTokensLengthLogitsProcessor(3, 3, [2, 7])],
        [p.ForcedEOSTokenLogitsProcessor(6, [2, 7])],
        [p.RepetitionPenaltyLogitsProcessor(0.5), p.NoRepeatNGramLogitsProcessor(3), p.MinLengthLogitsProcessor(9, [2])],
    ):
        scores = LOGITS
        for step in chosen:
            scores = step(rows, scores)
        print([type(c).__name__ for c in chosen])
        print(torch.where(scores.isinf(), torch.tensor(-99.0), scores).numpy().round(6).tolist())


def greedy():
    """A left-padded batch, as Hugging Face continues it: the beginnings of what sliding() prints."""
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(folder)
        model = transformers.GPT2LMHeadModel.from_pretrained(folder)
    longest = max(map(len, PROMPTS))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in PROMPTS])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in PROMPTS])
    out = model.generate(ids, attention_mask=mask, max_new_tokens=16, do_sample=False, pad_token_id=0)
    for row in out[:, longest:].tolist():
        print(row)


def sliding():
    """Without a cache. The context of 24 tokens slides: when it would hold 25, its last 12 are read again."""
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(folder)
        model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    for prompt in PROMPTS:
        context, new = list(prompt), []
        for _ in range(60):
            if len(context) > 24:
                context = context[-12:]
            with torch.no_grad():
                new.append(model(torch.tensor([context])).logits[0, -1].argmax().item())
            context.append(new[-1])
        print(new)


if __name__ == "__main__":
    warpers()
    processors()
    greedy()
    sliding()
