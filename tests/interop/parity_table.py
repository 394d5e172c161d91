"""The parity table: each family with each head, in each engine, beside transformers on a random configuration. A cell holds the
error relative to the largest value, from float64; "equal" for ids and for files that come back; "refused", with the reason below
the table; "-" where there is nothing to compare. It fails if a cell holds anything else.

    parity_table.py                          half of its rows, others each day
    parity_table.py --part 1                 the whole table, by the day's date
    parity_table.py --seed 7 --only llama    the rows of a family, by another seed
"""

import functools
import json
import os
import pathlib
import random
import sys
import tempfile
import traceback

os.environ |= {"OMP_NUM_THREADS": "1"}  # the rows run beside one another

import seeded_run  # noqa: E402
import torch  # noqa: E402
from cases.configurations import FAMILIES  # noqa: E402
from cases.generator import Generator, Refused, run  # noqa: E402
from forward_parity import error_of, flags_of, hf  # noqa: E402
from exported_models import ExportedModel
from safetensors.torch import load_file  # noqa: E402
from test_decoding import Gpt2  # noqa: E402

ENGINES = ("fused", "explicit", "packed", "TorchScript", "pt2", "ONNX", "HF round trip")
MEASURES = ("logits", "hidden", "gradients", "greedy", "beams", "cached")
NOTHING = "-"


def group_of(name):
    if name.startswith("grad."):
        return "gradients"
    return "hidden" if "hidden_state" in name or "attentions." in name or name == "pooler_output" else "logits"


class Row:
    """A family with a head; cells {(engine, measure): text}."""

    def __init__(self, suite, seed, folder):
        self.suite, self.seed, self.folder = suite, seed, folder
        self.head, self.model, self.inputs = suite.random_model(seed)
        self.family = self.model.config.model_type
        self.has_pt2 = seed % 4 == 0  # a quarter of the rows, others each day: torch.export loads slowly
        self.source = folder / "model"
        self.model.save_pretrained(self.source)
        self.cells, self.reasons = {(engine, measure): NOTHING for engine in ENGINES for measure in MEASURES}, set()

    def fill(self, engine, measures, compute):
        """compute() gives a cell of each measure, or None for those that do not apply."""
        try:
            cells = compute()
        except Refused as refused:
            self.reasons.add(f"{engine}: {refused}")
            cells = {measure: "refused" for measure in measures}
        except Exception as fault:  # a row with a fault is shown, and fails the table
            where = traceback.extract_tb(fault.__traceback__)[-1]
            self.reasons.add(f"{engine}: {type(fault).__name__} in line {where.lineno}: {str(fault)[:600]}")
            cells = {measure: "FAULT" for measure in measures}
        self.cells.update({(engine, measure): cell for measure, cell in cells.items() if cell is not None})

    def references(self, inputs):
        """What transformers computes, and what in float64."""
        return hf.expected_tensors(self.model, self.head, inputs), hf.exact_tensors(self.model, self.head, inputs)

    def errors(self, inputs, actual, expected, exact):
        """The cells of tensors beside those of transformers."""
        cells = {}
        for measure in ("logits", "hidden", "gradients"):
            names = [name for name in actual if group_of(name) == measure]
            if not names:
                continue
            missing = [name for name in names if name not in expected]
            assert not missing, f"tensors that transformers lacks: {missing}"
            error, fault = error_of(self.model, self.head, inputs, actual, expected, exact, names)
            assert not fault, fault
            cells[measure] = f"{error:.0e}"
        return cells

    def forward(self, inputs, *words):
        path = self.folder / "out.safetensors"
        run("forward", "--model", self.source, *flags_of(inputs), "--output", path, *words)
        return load_file(path)

    def modules(self):
        words = ["--gradients"] if "labels" in self.inputs else []
        expected, exact = self.references(self.inputs)

        def compare(complete, *more):
            actual = self.forward(self.inputs, *words, *more)
            wanted = {name for name in expected if complete or "attentions." not in name}
            assert set(actual) == wanted, f"tensors {sorted(set(actual) ^ wanted)}"
            return self.errors(self.inputs, actual, expected, exact)

        measures = {group_of(name) for name in expected}
        self.fill("explicit", measures, lambda: compare(True))
        self.fill("fused", measures, lambda: compare(False, "--no_attentions"))

    @functools.cached_property
    def plain_inputs(self):
        """Without labels; of a decoder whole rows, since TorchScript and packed decoders that write text have no padding."""
        inputs = {name: tensor.clone() for name, tensor in self.inputs.items() if "label" not in name}
        if hf.is_causal(self.model):
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if self.head == "seq2seq-lm" and "decoder_input_ids" not in inputs:
            inputs["decoder_input_ids"] = torch.randint(self.model.config.vocab_size, (len(inputs["input_ids"]), 5))
        return inputs

    @functools.cached_property
    def plain_references(self):
        return self.references(self.plain_inputs)

    def packed(self):
        inputs = dict(self.plain_inputs)
        writes = hf.is_causal(self.model) and self.head == "causal-lm"
        if not writes:
            inputs["attention_mask"] = self.inputs["attention_mask"].clone()
        mask = inputs["attention_mask"]  # of a decoder that writes it is 1 already
        mask[:2] = 1  # packed stacks have padding on the right alone, and those that are no decoder's give zeros there
        given = {name: tensor for name, tensor in inputs.items() if not (writes and name == "attention_mask")}

        def seen(tensors):
            return {name: tensor * mask.reshape(mask.shape + (1,) * (tensor.dim() - 2)) if tensor.shape[:2] == mask.shape else tensor
                    for name, tensor in tensors.items()} if self.head != "seq2seq-lm" else tensors

        def compare():
            expected, exact = map(seen, self.references(inputs))
            return self.errors(inputs, seen(self.forward(given, "--weights", "float32")), expected, exact)

        self.fill("packed", ["hidden" if self.head == "base" else "logits"], compare)

    def exported(self, engine, form, load):
        """load(path) gives a function of the inputs by name."""
        inputs, path = self.plain_inputs, self.folder / f"model.{form}"
        has_types = form == "pt2" and "token_type_ids" in inputs  # such a program has zeros in their place
        if has_types:
            inputs = {**inputs, "token_type_ids": torch.zeros_like(inputs["token_type_ids"])}

        def compare():
            run("export", "--model", self.source, "--format", form, "--output", path)
            with torch.no_grad():
                found = load(path)(inputs)
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            expected, exact = self.references(inputs) if has_types else self.plain_references
            names = [name for name in expected if "hidden_states." not in name and "attentions." not in name][:len(found)]
            return self.errors(inputs, dict(zip(names, found, strict=True)), expected, exact)

        self.fill(engine, ["hidden" if self.head == "base" else "logits"], compare)

    def exports(self):
        def in_order(program, *order):
            return lambda inputs: program(*(inputs[name] for name in order if name in inputs))

        words = ("input_ids", "attention_mask")
        self.exported("TorchScript", "torchscript",
                      lambda path: in_order(torch.jit.load(path), *words, "token_type_ids", "decoder_input_ids"))
        if self.has_pt2:
            self.exported("pt2", "pt2", lambda path: in_order(torch.export.load(path).module(), *words, "decoder_input_ids"))
        self.exported("ONNX", "onnx", lambda path: lambda inputs: ExportedModel.from_onnx(path).forward(**inputs))

    def round_trip(self):
        target = self.folder / "back"

        def compare():
            run("export", "--model", self.source, "--format", "huggingface", "--output", target)
            # Both are opened again: M2M-100 replaces its table of positions by a longer one when it runs, and self.model has run.
            before, after = (hf.exact_tensors(type(self.model).from_pretrained(directory, attn_implementation="eager").eval(),
                                              self.head, self.inputs) for directory in (self.source, target))
            cells = {}
            for name, tensor in before.items():
                torch.testing.assert_close(after[name], tensor, rtol=1e-10, atol=1e-10)
                cells[group_of(name)] = "equal"
            return cells

        self.fill("HF round trip", {group_of(name) for name in hf.expected_tensors(self.model, self.head, self.inputs)}, compare)

    def generation(self):
        suite = Gpt2() if self.family == "gpt2" else self.suite
        model = suite.generator(self.seed % 1000)
        model.config.eos_token_id = model.generation_config.eos_token_id = None
        directory, draw = self.folder / "generator", random.Random(self.seed)
        if model.config.is_encoder_decoder:
            model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id
        model.save_pretrained(directory)
        rows = [[draw.randrange(4, model.config.vocab_size) for _ in range(length)] for length in (7, 3, 12, 1)]
        self.generator = Generator(model, rows)
        for engine, weights in (("fused", "modules"), ("packed", "float32")):
            self.fill(engine, ("greedy", "cached"), lambda weights=weights: self.generator.greedy(directory, weights))
            self.fill(engine, ("beams",), lambda weights=weights: self.generator.beams(directory, weights))
        self.fill("TorchScript", ("greedy",), lambda: self.generator.script(directory, self.folder / "generator.pt"))
        self.fill("ONNX", ("greedy",), lambda: self.generator.exported(directory, self.folder / "generator.onnx", ExportedModel.from_onnx))
        if self.has_pt2:
            self.fill("pt2", ("greedy",), lambda: self.generator.exported(directory, self.folder / "generator.pt2", ExportedModel.from_pt2, "--decoding"))
        self.fill("HF round trip", ("greedy", "beams"), lambda: self.generator.round_trip(directory, self.folder / "generator.hf"))

    def compute(self):
        self.modules()
        self.packed()
        self.exports()
        self.round_trip()
        if self.head in ("causal-lm", "seq2seq-lm"):
            self.generation()
        return self


def row_of(family, number, seed):
    """The row of a suite's head; its seed gives the head."""
    suite = FAMILIES[family]()
    drawn = random.Random(f"{seed} {family} {number}").randrange(10**6) * len(suite.HEADS) + number
    with tempfile.TemporaryDirectory() as folder:
        row = Row(suite, drawn, pathlib.Path(folder)).compute()
    return row.family, list(suite.HEADS)[number], row.cells, sorted(row.reasons)


def rows_of(only):
    """(suite, head) of each row; each family of the registry has some."""
    names = [suite().random_model(0)[1].config.model_type for suite in FAMILIES]
    registry = {preset["family"] for preset in json.loads(run("models", "--json", threads=False))}
    without = sorted(name for name in registry - set(names) if not name.startswith("tutorial-"))  # which transformers lacks, too
    assert not without, f"no rows for {without}"
    return [(family, number) for family, suite in enumerate(FAMILIES) for number in range(len(suite.HEADS)) if only in (None, names[family])]


def print_table(rows):
    print("| family | head | engine | " + " | ".join(MEASURES) + " |\n|" + "---|" * (3 + len(MEASURES)))
    for family, head, cells, _ in rows:
        for engine in ENGINES:
            print(f"| {family} | {head} | {engine} | " + " | ".join(cells[engine, measure] for measure in MEASURES) + " |")
    print()
    for family, head, _, reasons in rows:
        for reason in reasons:
            print(f"{family}, {head}, {reason}")


def main():
    parser = seeded_run.flags(__doc__)
    parser.add_argument("--part", type=int, default=16 if seeded_run.SHORT else 2, help="compute one row in so many")
    parser.add_argument("--only", help="model_type of a family")
    arguments = parser.parse_args()
    seeded_run.be_quiet()
    rows = rows_of(arguments.only)
    rows = sorted(random.Random(arguments.seed).sample(rows, -(-len(rows) // arguments.part)))
    print(f"{len(rows)} rows by the seed {arguments.seed}", flush=True)
    with seeded_run.processes(arguments.workers) as workers:
        found = list(workers.map(row_of, *zip(*rows), [arguments.seed] * len(rows)))
    print_table(found)
    return int(any(cell == "FAULT" for _, _, cells, _ in found for cell in cells.values()))


if __name__ == "__main__":
    sys.exit(main())
