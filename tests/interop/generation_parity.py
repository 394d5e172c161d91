"""What the tests of models that generate share: tzoo generate, TorchScript files and half-precision checkpoints beside
transformers."""

import glob
import json
import os
import random
import tempfile

import torch
from forward_parity import SHORT, hf, tzoo

SEEDS = range(2 if SHORT else 3)


def padded(rows, side, filling):
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), filling)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        columns = slice(longest - len(row), longest) if side == "left" else slice(0, len(row))
        ids[i, columns] = torch.tensor(row)
        mask[i, columns] = 1
    return ids, mask


def new_tokens(row, ends):
    """Up to the first end token, which is kept."""
    first = next((i for i, token in enumerate(row) if token in ends), len(row))
    return row[:first + 1]


class GenerationParity:
    """Mixed into a TestCase that has generator(seed) -> a model of transformers whose greedy ids vary."""

    SIDE = "left"
    VARIED = {}  # (class, seed): the number that first_varied found

    def first_varied(self, seed, make, most):
        """make(number) gives a model of transformers; the first of them whose greedy ids vary, looked for once."""
        key = type(self).__name__, seed
        for number in range(self.VARIED.get(key, 0), most):
            model = make(number)
            if key in self.VARIED or len(set(sum(self.greedy(model, self.random_rows(model, random.Random(seed)), 15), []))) > 4:
                break
        self.VARIED[key] = number
        return model

    def random_rows(self, model, draw):
        # None of them is what fills the rows.
        return [[draw.randrange(4, model.config.vocab_size) for _ in range(length)] for length in (7, 3, 12, 1)]

    @torch.no_grad()
    def greedy(self, model, rows, count, ends=()):
        ids, mask = padded(rows, self.SIDE, 0)
        out = model.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=False, pad_token_id=0,
                             eos_token_id=list(ends) or None)
        begin = 1 if model.config.is_encoder_decoder else ids.size(1)
        return [new_tokens(row, ends) for row in out[:, begin:].tolist()]

    def generate(self, directory, rows, count):
        done = tzoo("generate", "--model", directory, "--input_ids", json.dumps(rows), "--max_new_tokens", str(count),
                    "--temperature", "0", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_greedy_ids_of_a_padded_batch(self):
        for seed in SEEDS:
            model, draw = self.generator(seed), random.Random(seed)
            rows = self.random_rows(model, draw)
            free = self.greedy(model, rows, 15)
            self.assertGreater(len(set(sum(free, []))), 3)  # a model that repeats itself would hide a fault
            ends = [free[0][4], free[1][2]]
            for eos in (None, ends[0], ends):
                model.generation_config.eos_token_id = eos
                model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id \
                    if model.config.is_encoder_decoder else None
                listed = [] if eos is None else ([eos] if isinstance(eos, int) else eos)
                with self.subTest(seed=seed, eos=eos), tempfile.TemporaryDirectory() as directory:
                    model.config.eos_token_id = eos
                    model.save_pretrained(directory)
                    said = self.generate(directory, rows, 15)
                    self.assertEqual(said["ids"], self.greedy(model, rows, 15, listed))
                    self.assertNotIn("text", said)

    def exported(self, model, folder, *words):
        source, target = os.path.join(folder, "model"), os.path.join(folder, "model.pt")
        model.save_pretrained(source)
        done = tzoo("export", "--model", source, "--output", target, "--verify", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return torch.jit.load(target)

    def script_inputs(self, model, batch, length, is_padded):
        ids = torch.randint(4, model.config.vocab_size, (batch, length))
        mask = torch.ones_like(ids)
        if is_padded:
            mask[0, :length // 3] = 0
            mask[-1, length - length // 4:] = 0
        inputs = {"input_ids": ids, "attention_mask": mask}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.randint(4, model.config.vocab_size, (batch, length // 2 + 1))
        return inputs

    def compare_script(self, script, model, tolerance):
        for batch, length, is_padded in ((1, 1, False), (2, 9, False), (3, 16, True)):
            inputs = self.script_inputs(model, batch, length, is_padded)
            found, expected = script(*inputs.values()).float(), model(**inputs).logits.float()
            self.assertEqual(found.shape, expected.shape)
            if not model.config.is_encoder_decoder:  # what a hidden query gives is not defined
                found, expected = (t * inputs["attention_mask"][..., None] for t in (found, expected))
            self.assertLessEqual(((found - expected).abs().max() / expected.abs().max()).item(), tolerance)

    @torch.no_grad()
    def test_a_torchscript_file_gives_the_same_logits_and_ids(self):
        for seed in SEEDS:
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                model = self.generator(seed)
                script = self.exported(model, folder)
                self.compare_script(script, model, 1e-5)
                ids = torch.randint(4, model.config.vocab_size, (3, 8))
                expected = self.greedy(model, ids.tolist(), 20)
                for arguments in ((ids, 20, 0, 0), (ids, 20, 0.0)):
                    self.assertEqual(script.generate(*arguments).tolist(), expected)
                self.assertEqual(script.generate(ids, 20, 0.7, 5).shape, (3, 20))

    @torch.no_grad()
    def test_a_torchscript_file_in_bfloat16(self):
        with tempfile.TemporaryDirectory() as folder:
            model = self.generator(1)
            script = self.exported(model, folder, "--dtype", "bfloat16")
            self.assertEqual({p.dtype for p in script.parameters()}, {torch.bfloat16})
            self.compare_script(script, model.bfloat16(), 0.06)

    @torch.no_grad()
    def test_half_precision_and_shards(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype), tempfile.TemporaryDirectory() as directory:
                model = self.generator(2).to(dtype)
                model.save_pretrained(directory, max_shard_size="12KB")
                self.assertGreater(len(glob.glob(os.path.join(directory, "model-*.safetensors"))), 1)
                inputs = self.script_inputs(model, 3, 11, True)
                actual = self.forward(directory, inputs)["logits"]
                # Read again: a model that was converted has lost digits of its rotary frequencies.
                whole = type(model).from_pretrained(directory, dtype=torch.float32).eval()
                expected = whole(**inputs).logits
                if not model.config.is_encoder_decoder:
                    actual, expected = (t * inputs["attention_mask"][..., None] for t in (actual, expected))
                self.assertLessEqual(((actual - expected).abs().max() / expected.abs().max()).item(), 1e-5)
