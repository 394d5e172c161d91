"""tzoo export --format packed, and the verbs that read what it writes."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from tiny_checkpoint import write_checkpoint, write_json
from tzoo_runner import CommandTest, run

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
TYPES = ("float32", "bfloat16", "int8", "int4")


class PackedDirectory(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model, self.packed = self.folder / "model", self.folder / "packed"
        write_checkpoint(self.model, tokenizer=True, generation={"eos_token_id": 3})

    def export(self, weights, output=None, model=None):
        return self.succeed("export", "--model", model or self.model, "--format", "packed", "--weights", weights,
                            "--output", output or self.packed)

    def parts(self, packed):
        """Header and weights of a directory's file."""
        file = (packed / "packed.safetensors").read_bytes()
        begin = 8 + int.from_bytes(file[:8], "little")
        return json.loads(file[8:begin]), file[begin:]

    def generate(self, model, *words):
        said = json.loads(self.succeed("generate", "--model", model, "--prompt", "the cat", "--max_new_tokens", 9,
                                       "--num_samples", 2, "--seed", 5, "--json", *words))
        return said["ids"], said["text"]

    def test_generates_what_the_source_does(self):
        for weights in TYPES:
            with self.subTest(weights):
                self.assertRegex(self.export(weights), rf"wrote {self.packed}: [\d.]+ kB, \d+ tensors, {weights}\n")
                expected = self.generate(self.model, "--weights", weights)
                self.assertEqual(self.generate(self.packed), expected)
                self.assertEqual(self.generate(self.packed, "--weights", weights), expected)
                self.assertEqual(self.generate(self.packed, "--num_beams", 2, "--temperature", 0, "--num_samples", 1),
                                 self.generate(self.model, "--num_beams", 2, "--temperature", 0, "--num_samples", 1, "--weights", weights))

    def test_embeds_what_the_source_does(self):
        words = ("embed", "--text", "the cat", "--json", "--model")
        exact = json.loads(self.succeed(*words, self.model, "--weights", "modules"))["embedding"]
        for weights in TYPES:
            with self.subTest(weights):
                self.export(weights, self.folder / weights)
                expected = json.loads(self.succeed(*words, self.model, "--weights", weights))["embedding"]
                self.assertEqual(json.loads(self.succeed(*words, self.folder / weights))["embedding"], expected)
                self.assertNotEqual(expected, exact)
                tolerance = {"float32": 1e-6, "bfloat16": 0.01, "int8": 0.02, "int4": 0.2}[weights]
                self.assertLess(max(abs(a - b) for a, b in zip(expected, exact, strict=True)), tolerance)

    def test_a_model_without_kernels_refuses_packed_weights(self):
        # Each step of decoding would rotate by other angles than those before it.
        model = shutil.copytree(GOLDEN / "llama" / "plain", self.folder / "dynamic")
        config = json.loads((model / "config.json").read_text())
        config["rope_parameters"] |= {"rope_type": "dynamic", "factor": 2.0}
        write_json(model, "config.json", config)
        words, reason = ("generate", "--input_ids", "[[1, 2]]", "--max_new_tokens", 2, "--json", "--model", model), "rope_scaling = dynamic"
        for weights in TYPES:
            self.assert_one_error(run(*words, "--weights", weights), 2, f"--weights {weights}", reason, "--weights modules")
        ids = [json.loads(self.succeed(*words, *more))["ids"] for more in ((), ("--weights", "modules"))]
        self.assertEqual(ids[0], ids[1])
        self.assert_one_error(run("export", "--model", model, "--format", "packed", "--weights", "int8", "--output", self.packed),
                              1, reason, "--format huggingface")

    def test_the_directory_is_complete_by_itself(self):
        self.export("int8")
        os.rename(self.model, self.folder / "gone")
        self.assertEqual(sorted(os.listdir(self.packed)),
                         ["config.json", "generation_config.json", "packed.safetensors", "tokenizer.json"])
        self.generate(self.packed)
        self.assertIn("GPT2LMHeadModel", (self.packed / "config.json").read_text())

    def test_evaluate_scores_the_stored_weights(self):
        text = self.folder / "text.txt"
        text.write_text("the cat and the dog\n" * 40)
        words = ("--task", "lm", "--dataset", text, "--block_size", 12, "--json")
        self.export("int8")
        expected = json.loads(self.succeed("evaluate", "--model", self.model, "--weights", "int8", *words))
        found = json.loads(self.succeed("evaluate", "--model", self.packed, *words))
        del expected["largest_logit_error"]  # from the modules, which the directory does not hold
        self.assertEqual(found, expected)

    def test_other_weights_are_refused(self):
        self.export("int4")
        for words in (("generate", "--prompt", "a", "--max_new_tokens", 1), ("bench", "decode")):
            refused = run(*words, "--model", self.packed, "--weights", "int8")
            self.assert_one_error(refused, 2, "--weights int8", "packed weights of type int4")

    def test_what_needs_modules_names_the_source(self):
        self.export("int8")
        out, text = self.folder / "out", self.folder / "text.txt"
        text.write_text("the cat and the dog\n" * 40)
        for words in (("train", "--task", "lm", "--dataset", text, "--block_size", 12, "--init_from", self.packed, "--out_dir", out),
                      ("attention", "--model", self.packed, "--text", "a cat"), ("lens", "--model", self.packed, "--text", "a cat"),
                      ("forward", "--model", self.packed, "--input_ids", "[[1]]", "--output", out),
                      ("export", "--model", self.packed, "--format", "torchscript", "--output", out),
                      ("export", "--model", self.packed, "--format", "packed", "--weights", "int8", "--output", out),
                      ("generate", "--model", self.packed, "--prompt", "a", "--weights", "modules")):
            with self.subTest(words[0]):
                self.assert_one_error(run(*words), 1, "packed for inference", f"exported from, {self.model}")

    def test_inspect_says_what_it_holds_and_whether_it_fits(self):
        self.export("int4")
        said = json.loads(self.succeed("inspect", self.packed, "--json", "--tensors"))
        self.assertEqual(said["packed"], {"weights": "int4", "source": str(self.model)})
        source = json.loads(self.succeed("inspect", self.model, "--json"))
        for key in ("architecture", "config", "parameters", "tokenizer"):
            self.assertEqual(said[key], source[key], key)
        header, _ = self.parts(self.packed)
        names = {name: header[name]["shape"] for name in header if name != "__metadata__"}
        self.assertEqual({tensor["name"]: tensor["shape"] for tensor in said["tensors"]}, names)
        self.assertIn(f"int4, from {self.model}", self.succeed("inspect", self.packed))
        config = json.loads((self.packed / "config.json").read_text())
        write_json(self.packed, "config.json", {**config, "n_layer": config["n_layer"] + 1})
        self.assert_one_error(run("inspect", self.packed), 1, "missing")

    def test_an_older_layout_names_the_command_that_renews_it(self):
        self.export("int8")
        file = self.packed / "packed.safetensors"
        older = re.sub(rb'"layout":"\d"', b'"layout":"0"', file.read_bytes(), count=1)
        file.write_bytes(older.replace(b'"crc32c"', b'"before"', 1))  # it had no checksums
        refused = run("generate", "--model", self.packed, "--prompt", "a", "--max_new_tokens", 1)
        command = f"tzoo export --model {self.model} --format packed --weights int8 --output {self.packed}"
        self.assert_one_error(refused, 1, "layout '0'", command)
        self.succeed(*command.split()[1:])
        self.generate(self.packed)

    def test_a_text_rounds_int4_weights(self):
        text, plain = self.folder / "text.txt", self.folder / "plain"
        text.write_text("the cat and the dog\n" * 40)
        words = ("export", "--model", self.model, "--format", "packed", "--weights", "int4")
        self.succeed(*words, "--output", plain)
        said = self.succeed(*words, "--output", self.packed, "--calibration", text)
        self.assertRegex(said, rf"rounded by \d+ tokens of {text}\n")
        said = json.loads(self.succeed(*words, "--output", self.packed, "--calibration", text, "--json"))
        self.assertGreater(said["calibration_tokens"], 100)
        header, weights = self.parts(self.packed)
        self.assertEqual(header["__metadata__"]["calibration"], str(text))
        self.assertEqual(len(weights), len(self.parts(plain)[1]))
        self.assertNotEqual(weights, self.parts(plain)[1])
        self.generate(self.packed)
        file = self.packed / "packed.safetensors"
        older = file.read_bytes().replace(b'"layout":"2"', b'"layout":"1"', 1)
        file.write_bytes(older.replace(b'"crc32c"', b'"before"', 1))
        command = f"--weights int4 --calibration {text} --output {self.packed}"
        self.assert_one_error(run("generate", "--model", self.packed, "--prompt", "a"), 1, command)

    def test_a_text_that_cannot_calibrate(self):
        words = ("export", "--model", self.model, "--format", "packed", "--weights", "int4", "--output", self.packed,
                 "--calibration")
        self.assert_one_error(run(*words, self.folder / "none.txt"), 1, "none.txt", "nor a file")
        text = self.folder / "text.txt"
        text.write_bytes(b"")
        self.assert_one_error(run(*words, text), 1, "text.txt", "empty")
        text.write_text("the cat")
        (self.model / "tokenizer.json").unlink()
        self.assert_one_error(run(*words, text), 1, "--calibration", "no tokenizer")
        self.assertFalse(self.packed.exists())

    def test_files_of_sentence_transformers_come_along(self):
        folder = self.model / "1_Pooling"
        folder.mkdir()
        write_json(folder, "config.json", {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True})
        write_json(self.model, "sentence_bert_config.json", {"max_seq_length": 9})
        modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                   {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
        write_json(self.model, "modules.json", modules)
        for _ in range(2):  # the second replaces the first
            self.export("int8")
            self.assertEqual((self.packed / "1_Pooling" / "config.json").read_text(), (folder / "config.json").read_text())
            self.assertTrue((self.packed / "sentence_bert_config.json").exists())
        write_json(self.model, "modules.json", [{**modules[1], "path": "../1_Pooling"}])
        refused = run("export", "--model", self.model, "--format", "packed", "--weights", "int8", "--output", self.packed)
        self.assert_one_error(refused, 1, "modules.json", "../1_Pooling")

    def test_flags_that_do_not_go_together(self):
        words = ("export", "--model", self.model, "--output", self.packed, "--format")
        for more, needle in ((("packed",), "needs --weights float32, bfloat16, int8 or int4"),
                             (("packed", "--weights", "q8_0"), "not q8_0"), (("gguf", "--weights", "int8"), "not int8"),
                             (("gguf", "--dtype", "float32"), "--dtype does not go with --format gguf; --weights names the type"),
                             (("packed", "--weights", "int8", "--verify"), "--verify"),
                             (("packed", "--weights", "int8", "--dtype", "bfloat16"), "--dtype"),
                             (("packed", "--weights", "int8", "--calibration", "kjv"), "--calibration needs"),
                             (("huggingface", "--weights", "int8"), "--format gguf, gguf-lora, packed or html")):
            self.assert_one_error(run(*words, *more), 2, needle)
        self.assertFalse(self.packed.exists())


if __name__ == "__main__":
    unittest.main()
