"""tzoo train with mixtures of experts: it learns, resumes bit for bit, and what it writes says the same in every engine."""

import json
import pathlib
import tempfile
import unittest

from tzoo_runner import CommandTest, run

TEXT = "".join(f"the {a} {b} of the {c}\n" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")) * 30
FAMILIES = ("mixtral", "qwen2_moe", "qwen3_moe")


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

    def ids(self, model, *words):
        said = self.succeed("generate", "--model", model, "--prompt", "the old ", "--max_new_tokens", "24", "--temperature", "0", "--json",
                            *words)
        return json.loads(said)["ids"]

    def test_fifty_updates(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                whole = self.train(family, model_type=family, max_iters=50)
                losses = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
                self.assertLess(losses[-1]["val_loss"], losses[0]["val_loss"] - 1)
                # The training loss has the balance of the experts in it, the evaluation's has not.
                config = json.loads((whole / "final/config.json").read_text())
                self.assertTrue(config["output_router_logits"])
                half = self.train(family + "-half", model_type=family, max_iters=25)
                resumed = self.train(family + "-half", model_type=family, max_iters=50, init_from="resume")
                self.assertEqual(half, resumed)
                weights = [(folder / "final/model.safetensors").read_bytes() for folder in (whole, resumed)]
                self.assertEqual(weights[0], weights[1])
                expected = self.ids(whole / "final", "--weights", "modules")
                self.assertEqual(self.ids(whole / "final", "--weights", "float32"), expected)
                for form in ("torchscript", "huggingface"):
                    target = self.folder / f"{family}.{form}"
                    self.succeed("export", "--model", whole / "final", "--format", form, "--output", target, "--verify")
                self.assertEqual(self.ids(target), expected)

    def test_checkpointing_activations_changes_nothing(self):
        plain, saving = (self.train(str(saves), model_type="mixtral", max_iters=5, activation_checkpointing=saves)
                         for saves in ("false", "true"))
        self.assertEqual(*((folder / "final/model.safetensors").read_bytes() for folder in (plain, saving)))

    def test_experts_of_other_families_are_refused(self):
        result = run("train", "--dataset", self.folder / "text.txt", "--tokenizer", "char", "--model_type", "llama", "--n_expert", 4,
                     "--out_dir", self.folder / "x")
        self.assert_one_error(result, 1, "--n_expert")


if __name__ == "__main__":
    unittest.main()
