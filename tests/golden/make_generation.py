#!/usr/bin/env python3
"""Prints the figures of Hugging Face that stand in models/generation_test.cpp and apps/test_generate_verb.py.

    python tests/golden/make_generation.py      (needs torch and transformers)
"""

import pathlib
import sys
import tempfile

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
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
    ):
        scores = LOGITS
        for step in warper:
            scores = step(None, scores)
        print([(type(w).__name__, vars(w)) for w in warper])
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
    """Without a cache. The context of 24 tokens slides: when it would hold 25, its last 12 are read anew."""
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


warpers()
greedy()
sliding()
