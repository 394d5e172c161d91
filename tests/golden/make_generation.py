#!/usr/bin/env python3
"""Prints the figures of Hugging Face that stand in models/generation_test.cpp and apps/test_generate_verb.py, and writes
golden/contrastive.json.

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


def contrastive_step(states_of, row, alpha, k):
    """Equation 5 of Su et al. (2022), from whole passes without a cache: the next id, and how far its score is above the
    second one's."""
    logits, before = states_of(row)
    scores = []
    for p, v in zip(*torch.topk(logits.softmax(-1), k)):
        own = states_of(row + [v.item()])[1][-1]
        likeness = torch.nn.functional.cosine_similarity(own[None], before).max()
        scores.append(((1 - alpha) * p.item() - alpha * likeness.item(), v.item()))
    scores.sort(reverse=True)
    return scores[0][1], scores[0][0] - scores[1][0]


def contrastive(checkpoint, cls, source, beginning, count, alpha, k):
    """`source` is what an encoder reads; None for a decoder."""
    model = cls.from_pretrained(FOLDER / checkpoint).double().eval()

    def states_of(row):
        ids = torch.tensor([row])
        given = {"input_ids": ids} if source is None else {"input_ids": torch.tensor([source]), "decoder_input_ids": ids}
        with torch.no_grad():
            out = model(**given, output_hidden_states=True)
        return out.logits[0, -1], (out.hidden_states if source is None else out.decoder_hidden_states)[-1][0]

    row = list(beginning)
    for _ in range(count):
        id, margin = contrastive_step(states_of, row, alpha, k)
        assert margin > 1e-3, (checkpoint, beginning, margin)  # other roundings give the same ids
        row.append(id)
    return {"checkpoint": checkpoint, "prompt": beginning if source is None else source, "penalty_alpha": alpha, "top_k": k,
            "ids": row[len(beginning):]}


def write_contrastive():
    gpt2, llama = transformers.GPT2LMHeadModel, transformers.LlamaForCausalLM
    t5 = transformers.T5ForConditionalGeneration
    cases = [
        contrastive("gpt2/tied", gpt2, None, [3, 1, 4, 1, 5], 11, 0.6, 4),
        contrastive("gpt2/tied", gpt2, None, [9, 2], 14, 0.6, 4),
        contrastive("gpt2/untied", gpt2, None, [6], 10, 0.5, 5),
        contrastive("llama/grouped", llama, None, [3, 1, 4, 1, 5], 24, 0.6, 4),
        contrastive("llama/grouped", llama, None, [9, 2], 24, 0.6, 4),
        contrastive("llama/grouped", llama, None, [7, 8], 24, 0.9, 7),
        contrastive("t5/release5", t5, [3, 1, 4, 1, 5, 1], [0], 12, 0.6, 4),
        contrastive("t5/release5", t5, [9, 2, 1], [0], 12, 0.6, 4),
    ]
    (FOLDER / "contrastive.json").write_text('{"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    warpers()
    processors()
    greedy()
    sliding()
    write_contrastive()
