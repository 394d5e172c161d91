#!/usr/bin/env python3
"""Makes beam_groups.json: diverse beams that transformers finds in languages whose next token depends on the last one alone.

Run by hand when the fixture has to change, with the last release that has groups of beams, in a folder of its own:

  pip install --target 4.49 transformers==4.49.0
  PYTHONPATH=4.49 python make_beam_groups.py

Each case: "weights" [last][next], whose share of a row is the token's probability; "options" of generate; "prompt", "eos", "pad"
(null: none); "ids" of each sequence without its end token, in whose place generate() writes the first of eos, whichever ended it.
"""

import json
import pathlib
import random

import torch
import transformers
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel

assert transformers.__version__ == "4.49.0", transformers.__version__
SIZE = 12


class Chain(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig

    def __init__(self, weights):
        super().__init__(PretrainedConfig())
        table = torch.tensor(weights, dtype=torch.double)
        self.chances = torch.nn.Parameter((table / table.sum(1, keepdim=True)).log().float())
        self.generation_config = GenerationConfig()

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **more):
        return {"input_ids": input_ids}

    def forward(self, input_ids, attention_mask=None, **more):
        return transformers.modeling_outputs.CausalLMOutput(logits=self.chances[input_ids])


def until_end(row, eos):
    return row[:next((place for place, token in enumerate(row) if token in eos), len(row))]


def case(seed):
    chance = random.Random(seed)
    groups, size = chance.choice([2, 2, 3]), chance.choice([1, 2, 3])
    weights = [[chance.randint(1, 1000) ** 2 for _ in range(SIZE)] for _ in range(SIZE)]
    prompt, eos, pad = [chance.randrange(SIZE)], chance.sample(range(1, SIZE), chance.choice([1, 2, 3])), chance.choice([None, 0, 5])
    options = {"num_beams": groups * size, "num_beam_groups": groups, "diversity_penalty": chance.choice([0.25, 0.5, 1.0, 3.0]),
               "num_return_sequences": chance.randint(1, groups * size), "max_new_tokens": chance.choice([4, 8, 16]),
               "length_penalty": chance.choice([1.0, 1.0, 0.5, -0.5, 2.0]), "early_stopping": chance.choice([False, False, True, "never"])}
    out = Chain(weights).generate(torch.tensor([prompt]), attention_mask=torch.ones(1, 1, dtype=torch.long), do_sample=False, use_cache=False,
                                  eos_token_id=eos, pad_token_id=pad, **options)
    return {"weights": weights, "prompt": prompt, "eos": eos, "pad": pad, "options": options,
            "ids": [until_end(row, eos) for row in out[:, 1:].tolist()]}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    cases = [case(seed) for seed in range(40)]
    text = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    (pathlib.Path(__file__).parent / "beam_groups.json").write_text('{"cases": [\n' + text + "\n]}\n")
