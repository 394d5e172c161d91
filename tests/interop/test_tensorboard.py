"""The event files of a training, read by TensorBoard itself."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


class TensorBoardTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text("the old house of the king\n" * 40)

    def train(self, **more):
        values = dict(dataset=self.text, out_dir=self.folder / "run", n_layer=1, n_head=2, n_embd=16, block_size=16, batch_size=4, eval_interval=10,
                      eval_iters=1, log_interval=5, keep_checkpoints=0, threads=1, device="cpu", **more)
        words = [str(word) for name, value in values.items() for word in (f"--{name}", value)]
        done = subprocess.run([os.environ["TZOO"], "train", *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_shows_each_figure_once_of_a_run_that_was_gone_on_with(self):
        self.train(max_iters=30)
        # From a checkpoint before its end, as after a kill: what is shown beyond it has to be forgotten.
        (self.folder / "run/checkpoints/step-00000030").rename(self.folder / "newest")
        began = int(time.time())
        while int(time.time()) == began:  # files are read in the order of their names, which hold the second
            time.sleep(0.02)
        self.train(max_iters=30, init_from="resume", learning_rate=5e-4)
        self.assertEqual(len(list((self.folder / "run/tensorboard").iterdir())), 2)

        events = EventAccumulator(str(self.folder / "run/tensorboard"))
        events.Reload()
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        for tag, key in (("train/loss", "train_loss"), ("train/lr", "lr"), ("val/loss", "val_loss"), ("val/perplexity", "val_perplexity")):
            self.assertIn(tag, events.Tags()["scalars"])
            shown = [(event.step, event.value) for event in events.Scalars(tag)]
            wanted = [(line["iter"], line[key]) for line in lines if key in line]
            self.assertEqual([step for step, _ in shown], [step for step, _ in wanted], tag)
            for (step, value), (_, expected) in zip(shown, wanted):
                self.assertAlmostEqual(value / expected, 1, places=5, msg=f"{tag} of step {step}")


if __name__ == "__main__":
    unittest.main()
