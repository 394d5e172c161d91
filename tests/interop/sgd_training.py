"""Trainings whose losses and weights a few lines of PyTorch can follow: plain SGD on one batch, with a constant rate."""

import json
import pathlib
import tempfile

import safetensors.torch
import torch

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

    def follow(self, run, model, loss, steps, rate):
        """The updates of a run, done to the model that it began with."""
        before = {name: weights.clone() for name, weights in model.state_dict().items()}
        model = model.double().train()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for row in self.metrics(run)[:steps]:
            value = loss(model)
            self.assertAlmostEqual(row["train_loss"] / value.item(), 1, delta=1e-5)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        ours = safetensors.torch.load_file(run / "final/model.safetensors")
        moved = 0
        for name, theirs in model.state_dict().items():
            self.assertLessEqual((ours[name] - theirs).abs().max().item(), 1e-5 * max(theirs.abs().max().item(), 0.1), name)
            moved = max(moved, (theirs - before[name]).abs().max().item())
        self.assertGreater(moved, 0.005)  # else the test would tell nothing
        return model

    def same_run(self, one, other, limit=1e-6):
        """Of runs whose sums have another order; each rank evaluates batches of its own size."""
        for a, b in zip(self.metrics(one), self.metrics(other), strict=True):
            self.assertAlmostEqual(a["train_loss"], b["train_loss"], delta=limit)
        a, b = (safetensors.torch.load_file(run / "final/model.safetensors") for run in (one, other))
        for name, weights in a.items():
            self.assertLessEqual((weights - b[name]).abs().max().item(), limit * max(1, weights.abs().max().item()), name)

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
