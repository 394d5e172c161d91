"""tzoo inspect."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from tiny_checkpoint import CHARS, write_checkpoint, write_json
from tzoo_runner import CommandTest, run

LAST_BIAS = "transformer.h.1.mlp.c_proj.bias"


class Inspect(CommandTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def inspect(self, directory, *flags):
        return json.loads(self.succeed("inspect", directory, "--json", *flags))

    def test_a_good_checkpoint(self):
        model = write_checkpoint(self.path("good"), tokenizer=True)
        found = self.inspect(model)
        self.assertTrue(found["good"])
        self.assertEqual(found["model_type"], "gpt2")
        self.assertEqual((found["architecture"], found["head"]), ("GPT2LMHeadModel", "causal-lm"))
        self.assertEqual(found["config"]["n_embd"], 16)
        self.assertEqual(len(found["loaded"]), 28)
        self.assertEqual(found["dtypes"], {"F32": 28})
        self.assertEqual(found["tokenizer"], {"kind": "char", "vocabulary": len(CHARS)})
        self.assertEqual(found["files"]["model.safetensors"], os.path.getsize(model + "/model.safetensors"))
        for fault in ("missing", "unexpected", "mismatched", "tied", "ignored", "unused"):
            self.assertEqual(found[fault], [])
        text = self.succeed("inspect", model)
        for words in ("GPT2LMHeadModel", "causal-lm", "n_embd", "loaded 28", "char"):
            self.assertIn(words, text)

    def test_tensors_are_listed(self):
        model = write_checkpoint(self.path("listed"))
        tensors = {tensor["name"]: tensor for tensor in self.inspect(model, "--tensors")["tensors"]}
        self.assertEqual(len(tensors), 28)
        self.assertEqual(tensors["transformer.h.0.attn.c_attn.weight"]["shape"], [16, 48])
        text = self.succeed("inspect", model, "--tensors")
        self.assertRegex(text, r"transformer\.h\.0\.attn\.c_attn\.weight +F32 +\[16,48\]")

    def test_tied_and_ignored_tensors_are_named(self):
        def change(tensors):
            tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
            tensors["transformer.h.0.attn.bias"] = ([1, 1, 2, 2], [1, 0, 1, 1])

        found = self.inspect(write_checkpoint(self.path("tied"), change=change))
        self.assertEqual(found["tied"], ["lm_head.weight"])
        self.assertEqual(found["ignored"], ["transformer.h.0.attn.bias"])

    def test_tensors_of_another_head_are_named_and_no_fault(self):
        def change(tensors):
            tensors["score.weight"] = ([2, 16], [0.5] * 32)

        model = write_checkpoint(self.path("other"), change=change)
        found = self.inspect(model)
        self.assertTrue(found["good"])
        self.assertEqual(found["unused"], ["score.weight"])
        self.assertIn("of other heads, unused 1:\n  score.weight\n", self.succeed("inspect", model))

    def test_every_fault_is_named_in_one_line(self):
        def change(tensors):
            tensors["transformer.h.1.extra"] = tensors.pop(LAST_BIAS)
            tensors["transformer.ln_f.weight"] = ([4], [1, 1, 1, 1])

        model = write_checkpoint(self.path("faulty"), change=change)
        names = (LAST_BIAS, "transformer.h.1.extra", "transformer.ln_f.weight: expected [16], found [4]")
        result = run("inspect", model)
        self.assert_one_error(result, 1, *names)
        self.assertIn("missing 1:\n  " + LAST_BIAS, result.out)
        as_json = run("inspect", model, "--json")
        self.assert_one_error(as_json, 1, *names)
        self.assertFalse(json.loads(as_json.out)["good"])

    def test_a_tokenizer_that_does_not_fit_is_told(self):
        larger = write_checkpoint(self.path("larger"), tokenizer=True, vocab_size=20)
        self.assertEqual(self.inspect(larger)["tokenizer"], {"kind": "char", "vocabulary": 32, "without_row": 12})
        self.assertIn("32 tokens, 12 of them beyond the model's vocabulary", self.succeed("inspect", larger))
        model = write_checkpoint(self.path("unreadable"))
        write_json(model, "tokenizer.json", {"model": {"type": "Sonnet"}})
        self.assertIn("Sonnet", self.inspect(model)["tokenizer"]["fault"])

    def test_a_run_shows_its_checkpoints_and_the_newest(self):
        run_folder = self.path("run")
        ages = {"checkpoints/step-00000200": 30, "checkpoints/step-00000400": 20, "final": 10}
        for name, age in ages.items():
            path = write_checkpoint(os.path.join(run_folder, name))
            if "step" in name:
                write_json(path, "trainer_state.json", {"iteration": int(name[-8:]), "best_val_loss": 1.5})
            os.utime(os.path.join(path, "model.safetensors"), (1e9 - age, 1e9 - age))
        found = self.inspect(run_folder)
        iterations = [(os.path.basename(c["directory"]), c["iteration"]) for c in found["checkpoints"]]
        self.assertEqual(iterations, [("step-00000200", 200), ("step-00000400", 400), ("final", None)])
        self.assertEqual(found["directory"], os.path.join(run_folder, "final"))
        text = self.succeed("inspect", run_folder)
        self.assertRegex(text, r"checkpoints/step-00000400 +400\n")

    def test_the_newest_checkpoint_of_a_run_is_inspected(self):
        run_folder = self.path("resumed")
        for age, name in ((10, "checkpoints/step-00000900"), (30, "final")):
            path = write_checkpoint(os.path.join(run_folder, name))
            os.utime(os.path.join(path, "model.safetensors"), (1e9 - age, 1e9 - age))
        self.assertTrue(self.inspect(run_folder)["directory"].endswith("step-00000900"))

    def test_control_characters_of_a_stranger_are_shown_as_codes(self):
        """ESC and the CSI of C1 would move the cursor, ring, or rename the window of who looks."""
        evil = "\x1b]0;owned\x07\u009b31m"
        shown = "\\x1b]0;owned\\x07\\x9b31m"

        def change(tensors):
            tensors["extra" + evil] = tensors.pop(LAST_BIAS)

        model = write_checkpoint(self.path("model" + evil), change=change, **{"key" + evil: 1})
        open(os.path.join(model, "notes" + evil), "w").close()
        write_json(model, "tokenizer.json", {"model": {"type": "Sonnet" + evil}})
        result = run("inspect", model, "--tensors")
        self.assert_one_error(result, 1, "extra" + shown, "model" + shown)
        for words in (f"  extra{shown}\n", f"extra{shown}  F32", f"  notes{shown}  0 B", f"directory  {self.path('model')}{shown}",
                      f"Sonnet{shown}"):
            self.assertIn(words, re.sub("  +", "  ", result.out))
        self.assertNotRegex(result.out + result.err, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertIn("key" + shown, result.err)  # a note
        self.assertEqual(json.loads(run("inspect", model, "--json").out)["unexpected"], ["extra" + evil])

    def test_directories_without_a_model(self):
        self.assert_one_error(run("inspect", self.path("nowhere")), 1, "nowhere")
        os.mkdir(self.path("empty"))
        self.assert_one_error(run("inspect", self.path("empty")), 1, "config.json")

    def test_directories_of_families_that_the_zoo_lacks(self):
        """Every verb that reads a directory names the family, and the nearest one if there is a relative."""
        lacking = {"longt5": "'t5'", "deberta": "'deberta-v2'", "camembert": "'roberta'", "gpt_neo": "'gpt2'", "codegen": "'gptj'",
                   "granitemoe": "'granite'", "deepseek_v3": "'llama'", "gemma3n": "'gemma3_text'", "blenderbot": "'mbart'",
                   "xglm": "'opt'", "mamba": ""}
        for model_type, nearest in lacking.items():
            directory = self.path(model_type)
            write_checkpoint(directory, model_type=model_type)
            for words in (["inspect", directory], ["generate", "--model", directory, "--prompt", "a"], ["models", directory],
                          ["export", "--model", directory, "--output", self.path("x.pt")]):
                with self.subTest(model_type=model_type, words=words):
                    self.assert_one_error(run(*words), 1, f"model_type '{model_type}'", nearest)

    def test_a_key_of_another_architecture(self):
        for key, value in (("logit_scale", 0.5), ("quantization_config", {"bits": 4})):
            directory = write_checkpoint(self.path(key), **{key: value})
            self.assert_one_error(run("inspect", directory), 1, "config.json", f"'{key}'", "GPT-2")

    def test_a_key_that_nothing_reads_is_noted(self):
        directory = write_checkpoint(self.path("unknown"), torch_dtype="float32", some_new_multiplier=2, another=[1])
        for words in (("inspect", directory), ("forward", "--model", directory, "--input_ids", "[[1]]", "--output", self.path("o"))):
            result = run(*words)
            self.assertEqual(result.code, 0, result.err)
            self.assertEqual(result.err.count("note: "), 1, result.err)
            self.assertIn("config.json: ignoring config keys that the gpt2 family does not use: another, some_new_multiplier\n", result.err)
            self.assertNotIn("note: ", run(*words, OMPI_COMM_WORLD_RANK="1").err)  # each rank would repeat it

    def test_layers_without_end_are_refused_before_their_weights_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(pathlib.Path(__file__).parents[1] / "golden/t5/base", folder, dirs_exist_ok=True)
            file = pathlib.Path(folder, "config.json")
            config = json.loads(file.read_text())
            for key in ("num_layers", "num_decoder_layers"):
                file.write_text(json.dumps(config | {key: 1 << 62}))
                self.assert_one_error(run("inspect", folder), 1, f"{key} must be", "100000", str(1 << 62))

    def test_a_cut_file(self):
        model = write_checkpoint(self.path("cut"))
        with open(os.path.join(model, "model.safetensors"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 4)
        self.assert_one_error(run("inspect", model), 1, "model.safetensors")


if __name__ == "__main__":
    unittest.main()
