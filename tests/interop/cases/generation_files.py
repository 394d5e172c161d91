"""A generation_config.json of random options: tzoo generate obeys it as generate() of transformers does."""

import copy
import json
import os
import shutil
import tempfile

import torch
from test_decoders import test_of
from test_decoding import LENGTHS, DecodingParity, Gpt2, Llama, T5, write_generation_config

from cases.outcome import EQUAL, NO_REFERENCE, refused_by_name, tzoo

COUNT = 61  # of the vocabulary


class Qwen2(DecodingParity):
    def generator(self, seed):
        return test_of("qwen2")().generator(seed)


@torch.no_grad()
def rounding_decides(suite, model, folder, rows, ends, expected):
    """Whether weights that differ by the rounding of float32 give transformers other ids."""
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        rounded = copy.deepcopy(model)
        for weight in rounded.parameters():
            weight.mul_(1 + 3e-7 * torch.randn(weight.shape, generator=generator))
        with tempfile.TemporaryDirectory() as directory:
            rounded.save_pretrained(directory)
            shutil.copy(os.path.join(folder, "generation_config.json"), directory)
            if suite.ids_by_file(rounded, directory, rows, ends) != expected:
                return True
    return False


def token(chance):
    return chance.randrange(4, COUNT)


def tokens(chance, most):
    return [token(chance) for _ in range(chance.randint(1, most))]


# Without effect on a search that draws nothing, or refused: (key, values).
OTHERS = {
    "temperature": [0.3, 1.0], "top_k": [5, 0], "top_p": [0.5, 1.0], "min_p": [0.1], "typical_p": [0.4], "epsilon_cutoff": [0.01, 0.0],
    "eta_cutoff": [0.01], "top_h": [0.4], "use_cache": [True, False], "renormalize_logits": [True, False],
    "remove_invalid_values": [True, False], "guidance_scale": [1.0, 1.5], "encoder_repetition_penalty": [1.0, 1.3],
    "encoder_no_repeat_ngram_size": [0, 2], "exponential_decay_length_penalty": [[3, 1.4]], "low_memory": [True, False],
    "sequence_bias": [[[[11], 5.0]]], "token_healing": [False], "diversity_penalty": [0.0, 0.4], "num_beam_groups": [1, 2],
    "penalty_alpha": [0.0, 0.4], "output_scores": [True], "return_dict_in_generate": [False], "max_time": [None, 60.0],
    "is_assistant": [False], "num_assistant_tokens": [3], "use_mtp": [False], "cache_implementation": ["dynamic", None],
    "forced_decoder_ids": [None, [[1, 5]]], "stop_strings": [None], "bos_token_id": [None, 5],
    "decoder_start_token_id": [0, 3], "dola_layers": [None], "an_unknown_key": [3],
}


def drawn_options(chance):
    parts = {
        "num_beams": lambda: chance.choice([1, 2, 3, 4, 6]), "length_penalty": lambda: chance.choice([2.0, 0.0, -0.5, 0.3, 1.0]),
        "early_stopping": lambda: chance.choice([True, False, "never"]), "num_return_sequences": lambda: chance.choice([1, 1, 2, 3]),
        "repetition_penalty": lambda: chance.choice([0.8, 1.0, 1.2, 1.7]), "no_repeat_ngram_size": lambda: chance.randint(0, 3),
        "bad_words_ids": lambda: [tokens(chance, 3) for _ in range(chance.randint(1, 12))],
        "suppress_tokens": lambda: tokens(chance, 30), "begin_suppress_tokens": lambda: tokens(chance, 30),
        "forced_bos_token_id": lambda: token(chance), "min_length": lambda: chance.randint(0, 24),
        # Beams choose between several forced ends, which all score 0, as torch.topk happens to order them.
        "forced_eos_token_id": lambda: chance.choice([token(chance), [token(chance)]]),
        "min_new_tokens": lambda: chance.randint(0, 12),
    }
    said = {key: parts[key]() for key in chance.sample(sorted(parts), chance.randint(0, 5))}
    for key in chance.sample(sorted(OTHERS), chance.choice([0, 0, 1, 2])):
        said[key] = chance.choice(OTHERS[key])
    if chance.random() < 0.1 and said:
        said[chance.choice(sorted(said))] = None
    limit = chance.choice(["max_length", "max_new_tokens", "max_new_tokens"])
    said[limit] = chance.randint(14, 24) if limit == "max_length" else chance.randint(1, 14)
    said["eos_token_id"] = chance.choice([None, token(chance), tokens(chance, 4), [7, 8, 9]])
    said["do_sample"] = False
    return said


def check(chance, folder):
    suite = chance.choice([Gpt2, Llama, Qwen2, T5])()
    model = suite.generator(chance.randrange(1000))
    said = drawn_options(chance)
    rows = [[token(chance) for _ in range(length)] for length in LENGTHS]
    ends = said["eos_token_id"] or []
    ends = [ends] if isinstance(ends, int) else ends
    model.save_pretrained(folder)
    write_generation_config(folder, said)
    try:
        expected = suite.ids_by_file(model, folder, rows, ends)
    except Exception:  # options that generate() refuses
        expected = None
    done = tzoo("generate", "--model", folder, "--input_ids", json.dumps(rows), "--json")
    if expected is None:
        return NO_REFERENCE
    if done.returncode:
        # Where the options together leave nothing, transformers takes token 0.
        return refused_by_name(done, *said, "no token can be chosen")
    found = json.loads(done.stdout)["ids"]
    if found != expected and rounding_decides(suite, model, folder, rows, ends, expected):
        return NO_REFERENCE
    assert found == expected, f"{type(suite).__name__}, {said} of {rows}: {found} instead of {expected}"
    return EQUAL
