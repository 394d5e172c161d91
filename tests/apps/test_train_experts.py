"""tzoo train with mixtures of experts; that they learn is in test_train_families.py."""

import json
import pathlib
import tempfile
import unittest

from tzoo_runner import CommandTest, run

TEXT = "".join(f"the {a} {b} of the {c}\n" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")) * 30


class TrainExpertsTest(CommandTest):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "text.txt").write_text(TEXT)

    def train(self, name, **more):
        values = dict(dataset=self.folder / "text.txt", tokenizer="char", n_layer=2, n_head=4, n_kv_head=2, n_embd=64, n_inner=96,
                      n_expert=4, block_size=16, batch_size=4, learning_rate=1e-2, min_lr=1e-3, warmup_iters=5, lr_decay_iters=50,
                      eval_interval=25, eval_iters=2, log_interval=1, threads=1, out_dir=self.folder / name)
        values.update(more)
        result = run("train", *(word for flag, value in values.items() for word in (f"--{flag}", str(value))))
        self.assertEqual(result.code, 0, result.err)
        return self.folder / name

    def test_the_experts_of_a_new_model_are_balanced(self):
        """The training loss has the balance of the experts in it, the evaluation's has not."""
        run = self.train("balanced", model_type="mixtral", max_iters=5)
        self.assertTrue(json.loads((run / "final/config.json").read_text())["output_router_logits"])

    def test_checkpointing_activations_changes_nothing(self):
        plain, saving = (self.train(str(saves), model_type="mixtral", max_iters=5, activation_checkpointing=saves)
                         for saves in ("false", "true"))
        self.assertEqual(*((folder / "final/model.safetensors").read_bytes() for folder in (plain, saving)))

    def test_experts_of_other_families_are_refused(self):
        result = run("train", "--dataset", self.folder / "text.txt", "--tokenizer", "char", "--model_type", "llama", "--n_expert", 4,
                     "--out_dir", self.folder / "x")
        self.assert_one_error(result, 2, "--n_expert")


if __name__ == "__main__":
    unittest.main()
