"""Rotary scaling that depends on a sequence's length (dynamic, longrope) beside transformers: within the original context,
beyond it, and across its end."""

import json
import os
import random
import tempfile
import unittest

import torch
import transformers
from forward_parity import difference, flags_of, hf, tzoo
from safetensors.torch import load_file

ORIGINAL, LONGEST = 12, 48
SIZES = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32, intermediate_size=40,
             vocab_size=61, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def longrope(pairs, theta=100.0):
    draw = random.Random(3)
    return {"rope_type": "longrope", "rope_theta": theta, "short_factor": [draw.uniform(1, 2) for _ in range(pairs)],
            "long_factor": [draw.uniform(2, 9) for _ in range(pairs)]}


def dynamic():
    return transformers.LlamaConfig(**SIZES, max_position_embeddings=ORIGINAL,
                                    rope_parameters={"rope_type": "dynamic", "rope_theta": 100.0, "factor": 3.0})


def llama():
    rope = {**longrope(4), "original_max_position_embeddings": ORIGINAL, "attention_factor": 1.3}
    return transformers.LlamaConfig(**SIZES, max_position_embeddings=LONGEST, rope_parameters=rope)


def phi3():
    return transformers.Phi3Config(**SIZES, max_position_embeddings=LONGEST, original_max_position_embeddings=ORIGINAL,
                                   rope_parameters={**longrope(3), "partial_rotary_factor": 0.75})


CASES = {"dynamic": (dynamic, transformers.LlamaForCausalLM), "longrope": (llama, transformers.LlamaForCausalLM),
         "phi3": (phi3, transformers.Phi3ForCausalLM)}


def new_model(case, seed=1):
    """Another for each use: transformers remembers the longest sequence that it has seen."""
    config, cls = CASES[case]
    model = hf.random_model(cls, config(), seed)
    model.generation_config.eos_token_id = None
    return model


class LongContextTest(unittest.TestCase):
    def test_logits_and_gradients(self):
        for case in CASES:
            for length in (5, ORIGINAL, ORIGINAL + 1, 30):
                with self.subTest(case=case, length=length), tempfile.TemporaryDirectory() as folder:
                    model, path = new_model(case), os.path.join(folder, "out.safetensors")
                    model.save_pretrained(folder)
                    torch.manual_seed(length)
                    inputs = hf.random_inputs(model, "causal-lm", length, 2, 2)
                    done = tzoo("forward", "--model", folder, *flags_of(inputs), "--gradients", "--output", path)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    expected = hf.expected_tensors(model, "causal-lm", inputs)
                    self.assertEqual(difference(new_model(case), "causal-lm", inputs, load_file(path), expected), "")

    def test_ids_across_the_end_of_the_original_context(self):
        """Greedy ids and beams, with packed weights and without."""
        for case in ("dynamic", "phi3"):  # of the others transformers keeps keys that were rotated otherwise
            for length in (4, ORIGINAL, 20):
                for beams in (1, 3):
                    for seed in (1, 2):
                        with self.subTest(case=case, length=length, beams=beams, seed=seed), \
                                tempfile.TemporaryDirectory() as folder:
                            model = new_model(case, seed)
                            model.save_pretrained(folder)
                            torch.manual_seed(length)
                            ids = torch.randint(1, 61, (2, length))  # without padding
                            with torch.no_grad():
                                expected = model.generate(ids, max_new_tokens=15, do_sample=False, num_beams=beams,
                                                          pad_token_id=0)[:, length:].tolist()
                            words = ["--num_beams", str(beams)] if beams > 1 else []
                            for backend in ("auto", "modules"):
                                found = self.ids(folder, ids.tolist(), "--weights", backend, *words)
                                self.assertEqual(found, expected, backend)

    def test_each_row_of_a_batch_has_its_own_length(self):
        """A row beyond the original context does not change the angles of a shorter one."""
        for case in ("dynamic", "phi3"):
            with self.subTest(case=case), tempfile.TemporaryDirectory() as folder:
                new_model(case).save_pretrained(folder)
                torch.manual_seed(5)
                rows = [torch.randint(1, 61, (length,)).tolist() for length in (3, ORIGINAL - 2)]
                with torch.no_grad():
                    expected = [new_model(case).generate(torch.tensor([row]), max_new_tokens=15, do_sample=False,
                                                         pad_token_id=0)[0, len(row):].tolist() for row in rows]
                for backend in ("auto", "modules"):
                    self.assertEqual(self.ids(folder, rows, "--weights", backend), expected, backend)

    def ids(self, folder, rows, *words):
        done = tzoo("generate", "--model", folder, "--input_ids", json.dumps(rows), "--max_new_tokens", "15",
                    "--temperature", "0", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["ids"]

    def test_torchscript_cannot_decode_with_them(self):
        for case in CASES:
            with self.subTest(case=case), tempfile.TemporaryDirectory() as folder:
                source, target = os.path.join(folder, "model"), os.path.join(folder, "model.pt")
                new_model(case).save_pretrained(source)
                done = tzoo("export", "--model", source, "--output", target)
                self.assertEqual(done.returncode, 1, done.stderr)
                kind = "dynamic" if case == "dynamic" else "longrope"
                self.assertIn(f"positions that depend on a text's length (rope_scaling = {kind})", done.stderr)
                self.assertFalse(os.path.exists(target))

    def test_theirs_to_ours_to_theirs(self):
        for case in CASES:
            with self.subTest(case=case), tempfile.TemporaryDirectory() as folder:
                source, target = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
                model = new_model(case)
                model.save_pretrained(source)
                done = tzoo("export", "--model", source, "--format", "huggingface", "--output", target, "--verify")
                self.assertEqual(done.returncode, 0, done.stderr)
                for length in (ORIGINAL, 30):
                    opened = type(model).from_pretrained(target, attn_implementation="eager").eval()
                    ids = torch.arange(length)[None]
                    torch.testing.assert_close(opened(ids).logits, new_model(case)(ids).logits, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
