"""A model that generates, beside transformers in each engine: greedy ids, beams, and log-probabilities of what the cache holds."""

import copy
import functools
import json

import torch

from forward_parity import ROUNDINGS, SMALLEST, flags_of, hf, tzoo

NEW_TOKENS = 12
BEAMS = dict(num_beams=3, num_return_sequences=2)


class Refused(Exception):
    """What the program says that it lacks."""


def run(*words, threads=True):
    """What the program printed."""
    done = tzoo(*map(str, words), *(["--threads", "1"] if threads else []))
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.strip().splitlines()[-1].removeprefix("error: ")
    if done.returncode in (1, 2) and any(words in said for words in ("use --weights modules", "no exported program can decode with",
                                                             "cannot be exported as a program")):
        raise Refused(said)
    raise AssertionError(said)


class Generator:
    """A model of transformers that generates, and prompts."""

    def __init__(self, model, rows):
        self.model, self.rows = model, rows
        self.ids = self.expected(model, do_sample=False)

    @torch.no_grad()
    def expected(self, model, **options):
        """Row by row: transformers counts padding as text."""
        found = []
        for row in self.rows:
            out = model.generate(torch.tensor([row]), attention_mask=torch.ones(1, len(row), dtype=torch.long), pad_token_id=0,
                                 max_new_tokens=NEW_TOKENS, **{"do_sample": False, **options})
            found += out[:, 1 if model.config.is_encoder_decoder else len(row):].tolist()
        return found

    @functools.cached_property
    def beam_ids(self):
        return self.expected(self.model, **BEAMS)

    @functools.cached_property
    def own_log_probabilities(self):
        """Of transformers, and of float64."""
        with hf.float64():
            exact = self.log_probabilities(copy.deepcopy(self.model).double())
        return self.log_probabilities(self.model), exact

    def said(self, directory, weights, *words):
        return json.loads(run("generate", "--model", directory, "--input_ids", json.dumps(self.rows), "--max_new_tokens", NEW_TOKENS,
                              "--temperature", "0", "--json", "--weights", weights, *words))

    @torch.no_grad()
    def log_probabilities(self, model):
        """Of the greedy ids, without a cache; of M2M-100 with it, which counts padding among the positions only then."""
        found = []
        if model.config.model_type == "m2m_100":
            for row, new in zip(self.rows, self.ids):
                out = model.generate(torch.tensor([row]), max_new_tokens=NEW_TOKENS, do_sample=False, output_logits=True,
                                     return_dict_in_generate=True)
                found.append(torch.cat(out.logits).log_softmax(-1).gather(1, torch.tensor(new)[:, None])[:, 0])
            return torch.cat(found)
        for row, new in zip(self.rows, self.ids):
            if model.config.is_encoder_decoder:
                begin = [model.config.decoder_start_token_id]
                logits = model(torch.tensor([row]), decoder_input_ids=torch.tensor([begin + new[:-1]])).logits[0]
            else:
                logits = model(torch.tensor([row + new[:-1]])).logits[0, len(row) - 1:]
            found.append(logits.log_softmax(-1).gather(1, torch.tensor(new)[:, None])[:, 0])
        return torch.cat(found)

    def greedy(self, directory, weights):
        said = self.said(directory, weights, "--logprobs")
        assert said["ids"] == self.ids, f"{said['ids']} instead of {self.ids}"
        theirs, exact = self.own_log_probabilities
        distance = lambda found: ((found - exact).abs().max() / exact.abs().max()).item()  # noqa: E731
        error, rounding = distance(torch.tensor(sum(said["logprobs"], []))), distance(theirs)
        assert error <= 10 * SMALLEST + ROUNDINGS * rounding, f"log-probabilities are {error:.1e} from float64, transformers' {rounding:.1e}"
        return {"greedy": "equal", "cached": f"{error:.0e}"}

    def beams(self, directory, weights):
        found = self.said(directory, weights, *flags_of({name: torch.tensor(value) for name, value in BEAMS.items()}))["ids"]
        assert found == self.beam_ids, f"{found} instead of {self.beam_ids}"
        return {"beams": "equal"}

    def script(self, directory, path):
        run("export", "--model", directory, "--output", path)
        script = torch.jit.load(path)
        for row, new in zip(self.rows, self.ids):
            found = script.generate(torch.tensor([row]), NEW_TOKENS, 0, 0).tolist()
            assert found == [new], f"{found} instead of {[new]}"
        return {"greedy": "equal"}

    @torch.no_grad()
    def exported(self, directory, target, load, *words):
        run("export", "--model", directory, "--format", target.suffix[1:], "--output", target, *words)
        files, start = load(target), self.model.generation_config.decoder_start_token_id
        for row, new in zip(self.rows, self.ids):
            found = files.greedy(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.long), NEW_TOKENS, start).tolist()
            assert found == [new], f"{found} instead of {[new]}"
        return {"greedy": "equal"}

    def round_trip(self, directory, target):
        run("export", "--model", directory, "--format", "huggingface", "--output", target)
        opened = type(self.model).from_pretrained(target, attn_implementation="eager").eval()
        opened.config._experts_implementation = "eager"  # its grouped products want rows of whole vectors
        assert self.expected(opened) == self.ids
        assert self.expected(opened, **BEAMS) == self.beam_ids
        return {"greedy": "equal", "beams": "equal"}
