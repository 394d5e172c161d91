"""tzoo train under mpirun: two ranks learn what one does with twice the batch, and fail together."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from tzoo_runner import PROGRAM

TEXT = "".join(f"the {a} {b} of the {c}\n" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")) * 20
SMALL = dict(tokenizer="char", n_layer=2, n_head=2, n_embd=16, block_size=16, learning_rate=1e-2, min_lr=1e-3, warmup_iters=2, adam_eps=1e-4,
             max_iters=12, eval_interval=6, eval_iters=2, log_interval=1, threads=1)


class ParallelTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def train(self, name, ranks, **more):
        values = {**SMALL, "dataset": self.text, "out_dir": self.folder / name, **more}
        words = [PROGRAM, "train", *(str(word) for key, value in values.items() for word in (f"--{key}", value))]
        environment = dict(os.environ)
        if ranks > 1:
            environment["LSAN_OPTIONS"] = "detect_leaks=0"  # Open MPI's own memory at its end
            words = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *words]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)

    def losses(self, name):
        lines = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
        return [line["train_loss"] for line in lines]

    def test_ranks_equal_one_with_as_large_a_batch(self):
        for name, ranks, flags in (("one", 1, dict(batch_size=12)), ("two", 2, dict(batch_size=6)), ("three", 3, dict(batch_size=4)),
                                   ("two-steps", 2, dict(batch_size=3, gradient_accumulation_steps=2))):
            done = self.train(name, ranks, **flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("Warning", done.stderr)
        train = self.losses("one")
        for name in ("two", "three", "two-steps"):
            other_train = self.losses(name)
            self.assertEqual(len(train), len(other_train))
            for a, b in zip(train[:-1], other_train[:-1]):  # the last is of an evaluation, whose batches are smaller
                self.assertAlmostEqual(a, b, places=4)
        self.assertLess(train[-2], train[0] - 0.5)

    def test_two_ranks_go_on_from_a_checkpoint(self):
        self.assertEqual(self.train("whole", 2, batch_size=4).returncode, 0)
        self.assertEqual(self.train("half", 2, batch_size=4, max_iters=6, lr_decay_iters=12).returncode, 0)
        done = self.train("half", 2, batch_size=4, lr_decay_iters=12, init_from="resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        whole, half = ((self.folder / name / "final/model.safetensors").read_bytes() for name in ("whole", "half"))
        self.assertEqual(whole, half)

    def test_a_divided_optimizer_writes_the_same_bytes(self):
        # Each optimizer; Adafactor's state has other shapes than the weights.
        for optimizer in ("adamw", "adafactor"):
            flags = dict(batch_size=4, optimizer=optimizer, ema_decay=0.9)
            self.assertEqual(self.train(f"{optimizer}-whole", 2, **flags).returncode, 0)
            done = self.train(f"{optimizer}-divided", 2, **flags, shard_optimizer="true")
            self.assertEqual(done.returncode, 0, done.stderr)
            whole, divided = (self.folder / f"{optimizer}-{name}" for name in ("whole", "divided"))
            names = sorted(path.relative_to(whole) for path in whole.rglob("*.safetensors"))
            self.assertTrue(any(path.name == "optimizer.safetensors" for path in names))
            for name in names:
                self.assertEqual((whole / name).read_bytes(), (divided / name).read_bytes(), name)

    def test_a_run_goes_on_with_a_divided_optimizer(self):
        self.assertEqual(self.train("whole", 2, batch_size=4).returncode, 0)
        self.assertEqual(self.train("half", 2, batch_size=4, max_iters=6, lr_decay_iters=12, shard_optimizer="true").returncode, 0)
        done = self.train("half", 2, batch_size=4, lr_decay_iters=12, init_from="resume", shard_optimizer="true")
        self.assertEqual(done.returncode, 0, done.stderr)
        whole, half = ((self.folder / name / "final/model.safetensors").read_bytes() for name in ("whole", "half"))
        self.assertEqual(whole, half)

    def test_one_process_has_no_ranks_to_divide_among(self):
        done = self.train("alone", 1, batch_size=4, shard_optimizer="true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--shard_optimizer", done.stderr)
        self.assertFalse((self.folder / "alone").exists())

    def test_a_rank_that_fails_ends_all(self):
        self.assertEqual(self.train("run", 2, batch_size=4).returncode, 0)
        done = self.train("run", 2, batch_size=4)  # there is a run already
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--overwrite", done.stderr)


if __name__ == "__main__":
    unittest.main()
