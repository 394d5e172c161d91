"""Trainings whose losses and weights a few lines of PyTorch can follow: plain SGD on one batch, with a constant rate."""

import json
import pathlib
import tempfile

from text_models import tzoo


class SgdTraining:
    """Of a test that has `root`, a folder with models, and train(), which gives what train_rows() does."""

    def train_rows(self, task, model, dataset, *words, steps, rate, batch):
        """What the program said, and the run."""
        out = tempfile.mkdtemp(dir=self.root)
        done = tzoo("train", "--task", task, "--init_from", str(self.root / model), "--dataset", str(dataset), "--val_dataset", str(dataset),
                    "--out_dir", out, "--max_iters", str(steps), "--eval_interval", str(steps), "--eval_iters", "1", "--log_interval", "1",
                    "--decay_lr", "false", "--learning_rate", str(rate), "--optimizer", "sgd", "--momentum", "0", "--weight_decay", "0",
                    "--grad_clip", "0", "--device", "cpu", "--batch_size", str(batch), *words)
        return done, pathlib.Path(out)

    def trained(self, *words, **more):
        done, run = self.train(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def evaluated(self, model, *words):
        done = tzoo("evaluate", "--model", str(model), "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def metrics(self, run):
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
