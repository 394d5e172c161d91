"""tzoo export from outside: what it writes, what it says, and what it refuses."""

import base64
import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

from tiny_checkpoint import write_checkpoint, write_json
from tzoo_runner import CommandTest, run


def read_safetensors(path):
    """name -> (dtype, shape, bytes)"""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    return {n: (e["dtype"], e["shape"], data[slice(*e["data_offsets"])]) for n, e in header.items()}


def read_json(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return json.load(file)


class ExportTest(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = write_checkpoint(self.path("model"), tokenizer=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def export(self, kind, output, *words, model=None):
        return ["export", "--model", model or self.model, "--format", kind, "--output", output, *words]

    def succeed(self, *args, **keywords):
        """As CommandTest's; TorchScript alone comes with a note on what replaces it."""
        result = run(*args, **keywords)
        note = "note: PyTorch deprecates TorchScript in favor of torch.export; --format pt2 writes a file for that\n"
        self.assertEqual((result.code, result.err), (0, note if "torchscript" in args else ""), result)
        return result.out

    def assert_only(self, *names):
        """Nothing half-written lies beside the files that are expected."""
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(names))


class TorchScriptTest(ExportTest):
    def test_writes_and_verifies_a_file(self):
        output = self.path("model.pt")
        said = self.succeed(*self.export("torchscript", output, "--verify"))
        self.assertRegex(said, rf"wrote {output}: [\d.]+ kB, 28 tensors, float32\n")
        self.assertEqual(said.count("verified outputs of ["), 3, said)
        self.assertIn(" padded: relative error ", said)
        self.assertIn("verified generate: 32 of 32 greedy tokens equal", said)
        self.assertTrue(zipfile.is_zipfile(output))
        self.assert_only("model", "model.pt")

    def test_json_has_the_numbers_of_the_lines(self):
        output = self.path("model.pt")
        said = json.loads(self.succeed(*self.export("torchscript", output, "--verify", "--json")))
        errors = [entry.pop("relative_error") for entry in said["verified"].pop("outputs")]
        self.assertEqual(said, {"output": output, "format": "torchscript", "bytes": os.path.getsize(output), "tensors": 28,
                                "type": "float32", "left_out": [], "not_carried": ["tokenizer.json"],
                                "verified": {"greedy_tokens": 32, "greedy_different": 0}})
        self.assertEqual(len(errors), 3)
        self.assertLess(max(errors), 1e-5)

    def test_what_one_file_cannot_hold_is_named(self):
        write_json(self.model, "generation_config.json", {"eos_token_id": 3, "temperature": 0.3, "top_p": 0.8})
        write_json(self.model, "chat_template.jinja", "")
        write_json(self.model, "scores.json", {})  # which nobody reads
        said = self.succeed(*self.export("torchscript", self.path("model.pt")))
        self.assertIn("not exported: chat_template.jinja, generation_config.json (temperature, top_p), scores.json, tokenizer.json\n", said)
        said = self.succeed(*self.export("html", self.path("model.html")))
        self.assertIn("not exported: chat_template.jinja, generation_config.json (temperature, top_p), scores.json\n", said)
        for kind in "huggingface", "packed", "onnx":
            words = ("--weights", "int8") if kind == "packed" else ()
            self.assertIn("not exported: scores.json\n", self.succeed(*self.export(kind, self.path(kind), *words)))

    def test_bfloat16_takes_half_the_bytes_of_the_weights(self):
        def weights(*words):
            self.succeed(*self.export("torchscript", self.path("m.pt"), "--verify", *words))
            with zipfile.ZipFile(self.path("m.pt")) as file:
                return sum(e.file_size for e in file.infolist() if "/data/" in e.filename)

        self.assertEqual(weights(), 2 * weights("--dtype", "bfloat16"))

    def test_an_older_file_stays_when_the_model_cannot_be_read(self):
        with open(self.path("model.pt"), "wb") as file:
            file.write(b"PK\3\4 older")
        os.remove(self.path("model", "model.safetensors"))
        self.assert_one_error(run(*self.export("torchscript", self.path("model.pt"))), 1, "model.safetensors")
        with open(self.path("model.pt"), "rb") as file:
            self.assertEqual(file.read(), b"PK\3\4 older")

    def test_only_an_earlier_export_is_replaced(self):
        for kind, fault in (("torchscript", "no TorchScript file"), ("pt2", "no PT2 file"), ("gguf", "no GGUF file")):
            with self.subTest(kind):
                with open(self.path("notes.txt"), "w") as file:
                    file.write("PG precious")
                self.assert_one_error(run(*self.export(kind, self.path("notes.txt"))), 1, self.path("notes.txt"), fault)
                with open(self.path("notes.txt")) as file:
                    self.assertEqual(file.read(), "PG precious")
        for words in ((), ("--dtype", "bfloat16")):
            self.succeed(*self.export("torchscript", self.path("model.pt"), *words))

    def test_a_name_that_its_readers_do_not_know_is_noted(self):
        self.assertIn("only if its name ends in .pt2\n", run(*self.export("pt2", self.path("program"))).err)
        self.assertNotIn("its name ends", run(*self.export("pt2", self.path("program.pt2"))).err)

    def test_an_output_that_cannot_be_written_is_one_error(self):
        for output in (self.path("missing", "model.pt"), self.model, "/proc/model.pt"):
            self.assert_one_error(run(*self.export("torchscript", output)), 1, output)
        self.assert_only("model")

    def test_a_pipe_is_refused_at_once(self):
        os.mkfifo(self.path("pipe"))
        for kind in ("torchscript", "pt2", "gguf", "html"):
            self.assert_one_error(run(*self.export(kind, self.path("pipe"))), 1, self.path("pipe"), "no regular file")
        os.mkdir(self.path("pages"))
        os.mkfifo(self.path("pages", "index.html"))
        pages = run("export", "--gallery", self.model, "--format", "html", "--output", self.path("pages"))
        self.assert_one_error(pages, 1, "index.html", "not a regular file")

    def test_an_end_token_that_is_no_id_is_named(self):
        write_checkpoint(self.path("wrong"), generation={"eos_token_id": "two"})
        result = run(*self.export("torchscript", self.path("m.pt"), model=self.path("wrong")))
        self.assert_one_error(result, 1, "generation_config.json", "eos_token_id")


class HuggingFaceTest(ExportTest):
    def test_every_tensor_and_file_comes_through(self):
        write_json(self.model, "generation_config.json", {"eos_token_id": [3, 4], "top_p": 0.5})
        write_json(self.model, "tokenizer_config.json", {"model_max_length": 24})
        out = self.path("out")
        said = self.succeed(*self.export("huggingface", out, "--verify"))
        self.assertRegex(said, rf"wrote {out}: [\d.]+ kB, 28 tensors, float32\n")
        self.assertIn("verified 28 tensors: equal in every bit\n", said)
        before = read_safetensors(self.path("model", "model.safetensors"))
        self.assertEqual(read_safetensors(self.path("out", "model.safetensors")), before)
        for name in ("generation_config.json", "tokenizer_config.json", "tokenizer.json"):
            self.assertEqual(read_json(out, name), read_json(self.model, name))
        self.assert_only("model", "out")

    def test_tensors_of_another_head_are_left_out_and_told(self):
        def change(tensors):
            tensors["score.weight"] = ([2, 16], [0.5] * 32)

        write_checkpoint(self.model, change=change)
        said = self.succeed(*self.export("huggingface", self.path("out"), "--verify"))
        self.assertIn("left out, of another head: score.weight\n", said)
        self.assertIn("verified 28 tensors", said)
        self.assertNotIn("score.weight", read_safetensors(self.path("out", "model.safetensors")))
        said = json.loads(self.succeed(*self.export("huggingface", self.path("again"), "--verify", "--json")))
        self.assertEqual((said["left_out"], said["verified"]), (["score.weight"], {"equal_tensors": 28}))

    def test_hf_is_another_name_of_the_format(self):
        self.succeed(*self.export("hf", self.path("out")))
        self.assertIn("model.safetensors", os.listdir(self.path("out")))

    def test_a_bare_model_stays_bare(self):
        def change(tensors):
            for name in list(tensors):
                tensors[name.removeprefix("transformer.")] = tensors.pop(name)

        write_checkpoint(self.model, change=change, architectures=["GPT2Model"])
        said = self.succeed(*self.export("huggingface", self.path("out"), "--verify"))
        self.assertIn("verified 28 tensors: equal in every bit\n", said)
        before = read_safetensors(self.path("model", "model.safetensors"))
        self.assertEqual(read_safetensors(self.path("out", "model.safetensors")), before)
        self.assertEqual(read_json(self.path("out"), "config.json")["architectures"], ["GPT2Model"])

    def test_keys_of_config_json_that_the_zoo_does_not_know_stay(self):
        write_checkpoint(self.model, summary_type="cls_index", activation_function="gelu_pytorch_tanh", torch_dtype="float32")
        self.succeed(*self.export("huggingface", self.path("out"), "--dtype", "bfloat16"))
        before, after = read_json(self.model, "config.json"), read_json(self.path("out"), "config.json")
        self.assertEqual((after["dtype"], after["torch_dtype"]), ("bfloat16", "bfloat16"))
        self.assertEqual({**after, "torch_dtype": "float32"}, {**after, **before})

    def test_without_a_generation_config_none_is_made_up(self):
        self.succeed(*self.export("huggingface", self.path("out")))
        self.assertFalse(os.path.exists(self.path("out", "generation_config.json")))

    def test_dtype_converts_the_weights(self):
        said = self.succeed(*self.export("huggingface", self.path("out"), "--verify", "--dtype", "bfloat16"))
        self.assertIn("28 tensors, bfloat16", said)
        before = read_safetensors(self.path("model", "model.safetensors"))["transformer.wpe.weight"]
        after = read_safetensors(self.path("out", "model.safetensors"))["transformer.wpe.weight"]
        self.assertEqual(after[:2], ("BF16", before[1]))
        # A bfloat16 is the upper half of a float32, rounded to the nearest.
        for i in range(0, len(before[2]), 4):
            wide = struct.unpack_from("<I", before[2], i)[0]
            self.assertEqual(struct.unpack_from("<H", after[2], i // 2)[0], (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16)

    def test_a_checkpoint_is_replaced_whole(self):
        self.succeed(*self.export("huggingface", self.path("out")))
        write_checkpoint(self.path("other"), seed=9)
        self.succeed(*self.export("huggingface", self.path("out"), model=self.path("other")))
        written = read_safetensors(self.path("out", "model.safetensors"))
        self.assertEqual(written, read_safetensors(self.path("other", "model.safetensors")))
        self.assertFalse(os.path.exists(self.path("out", "tokenizer.json")))
        self.assert_only("model", "other", "out")

    def test_other_directories_are_refused(self):
        os.makedirs(self.path("notes"))
        write_json(self.path("notes"), "notes.json", {})
        self.assert_one_error(run(*self.export("huggingface", self.path("notes"))), 1, "--output", "notes")
        shutil.copytree(self.model, self.path("more"))
        write_json(self.path("more"), "notes.json", {})
        self.assert_one_error(run(*self.export("huggingface", self.path("more"))), 1, "notes.json", "would be lost")
        self.assertTrue(os.path.exists(self.path("more", "notes.json")))
        shutil.copytree(self.model, self.path("more", "final"))
        write_json(self.path("more"), "run_config.json", {})
        self.assert_one_error(run(*self.export("huggingface", self.path("more", "final") + "/")), 1, "what a training has made")
        self.assert_one_error(run(*self.export("huggingface", self.model)), 1, "own directory")
        self.assert_one_error(run(*self.export("huggingface", "/proc/out")), 1, "/proc")
        self.assert_only("model", "notes", "more")

    def test_a_faulty_source_writes_nothing(self):
        write_checkpoint(self.path("faulty"), change=lambda tensors: tensors.pop("transformer.wpe.weight"))
        for kind in ("huggingface", "torchscript"):
            result = run(*self.export(kind, self.path("out"), model=self.path("faulty")))
            self.assert_one_error(result, 1, "transformer.wpe.weight")
        self.assert_only("model", "faulty")


class PlaceTest(ExportTest):
    def test_what_killed_exports_left_is_removed_and_a_live_ones_file_stays(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for kind, output in (("torchscript", "model.pt"), ("huggingface", "out"), ("packed", "packed")):
            left, live, elsewhere, other = (f".{name}.tmp-{process}" for name, process in
                                            ((output, ended.pid), (output, os.getpid()), (output, f"{ended.pid}-b"), ("x" + output, ended.pid)))
            for name in (left, live, elsewhere, other):
                os.makedirs(self.path(name)) if kind != "torchscript" else open(self.path(name), "w").close()
            locked = os.open(self.path(elsewhere), os.O_RDONLY)  # as a process of another machine has it
            fcntl.flock(locked, fcntl.LOCK_EX)
            self.succeed(*self.export(kind, self.path(output), *(["--weights", "float32"] if kind == "packed" else [])))
            self.assertEqual([os.path.exists(self.path(name)) for name in (output, left, live, elsewhere, other)], [True, False, True, True, True])
            os.close(locked)

    def test_no_output_takes_the_place_of_a_file_of_the_model(self):
        weights = self.path("model", "model.safetensors")
        link = self.path("link.safetensors")
        os.symlink(weights, link)
        with open(weights, "rb") as file:
            before = file.read()
        forward = ["forward", "--model", self.model, "--input_ids", "[[1, 2]]", "--output"]
        for output in (weights, link, self.path("model", "tokenizer.json")):
            self.assert_one_error(run(*forward, output), 1, "--output", output, "a file of the model")
        with open(weights, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(run(*forward, self.path("out.safetensors")).code, 0)
        self.assertEqual(run(*forward, self.path("out.safetensors")).code, 0)


class HtmlTest(ExportTest):
    """What the page computes is tested in a browser: tests/interop/test_html_page.py."""

    def page(self, output):
        """(header, bytes of the weights) of a page."""
        with open(output, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("<!DOCTYPE html><!-- tzoo export -->\n"), text[:100])
        parts = {name: re.search(rf'(?:id|class)="{name}">(.*?)</script>', text, re.DOTALL)[1] for name in ("model-header", "model-weights")}
        return json.loads(parts["model-header"]), base64.b64decode(parts["model-weights"])

    def test_writes_rounded_or_exact_rows(self):
        exact, rounded = self.path("exact.html"), self.path("rounded.html")
        self.assertRegex(self.succeed(*self.export("html", rounded)), rf"wrote {rounded}: [\d.]+ kB, 28 tensors, int8\n")
        self.succeed(*self.export("html", exact, "--weights", "float32"))
        (header, floats), (other, bytes_) = self.page(exact), self.page(rounded)
        self.assertEqual(header["head"], "causal-lm")
        self.assertEqual({entry["type"] for entry in header["tensors"]}, {"float32"})
        whole = next(entry for entry in header["tensors"] if entry["name"] == "embeddings.token.weight")
        row = next(entry for entry in other["tensors"] if entry["name"] == "embeddings.token.weight")
        rows, columns = whole["shape"]
        self.assertEqual((row["type"], row["shape"]), ("int8", [rows, columns]))
        weights = struct.unpack_from(f"<{columns}f", floats, whole["at"] + 4 * columns * (rows - 1))
        levels = struct.unpack_from(f"<{columns}b", bytes_, row["at"] + columns * (rows - 1))
        scale = struct.unpack_from("<f", bytes_, row["at"] + -(-rows * columns // 4) * 4 + 4 * (rows - 1))[0]
        self.assertAlmostEqual(scale, max(map(abs, weights)) / 127, places=7)
        self.assertEqual(max(map(abs, levels)), 127)
        for weight, level in zip(weights, levels, strict=True):
            self.assertLessEqual(abs(weight - level * scale), 0.501 * scale)
        self.assertEqual({entry["type"] for entry in other["tensors"] if len(entry["shape"]) == 1 or "position" in entry["name"]}, {"float32"})

    def test_names_what_the_page_lacks(self):
        output = self.path("model.html")
        without = write_checkpoint(self.path("without"))
        self.assert_one_error(run(*self.export("html", output, model=without)), 1, "has no tokenizer.json")
        base = write_checkpoint(self.path("base"), tokenizer=True)
        write_json(base, "config.json", read_json(base, "config.json") | {"architectures": ["GPT2Model"]})
        self.assert_one_error(run(*self.export("html", output, model=base)), 1, "the page has no base head")
        for part, section in (("normalizer", {"type": "Nmt"}), ("pre_tokenizer", {"type": "CharDelimiterSplit", "delimiter": "x"})):
            model = write_checkpoint(self.path(part), tokenizer=True)
            file = read_json(model, "tokenizer.json")
            write_json(model, "tokenizer.json", file | {part: {"type": "Sequence", part.replace("_", "") + "s": [section]}})
            self.assert_one_error(run(*self.export("html", output, model=model)), 1, f"the page has no {part} {section['type']}")
        write_json(model, "tokenizer.json", file | {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a+b"}, "behavior": "Isolated", "invert": False}})
        self.assert_one_error(run(*self.export("html", output, model=model)), 1, "the page does not know the regular expression a+b of the pre_tokenizer")
        for words, named in ((("--weights", "int4"), "float32 or int8, not int4"), (("--dtype", "float32"), "--dtype"), (("--verify",), "--verify")):
            self.assert_one_error(run(*self.export("html", output, *words)), 2, named)
        self.assertFalse(os.path.exists(output))

    def test_replaces_an_earlier_page_and_no_other(self):
        output = self.path("model.html")
        self.succeed(*self.export("html", output))
        self.succeed(*self.export("html", output))
        with open(output, "w", encoding="utf-8") as file:
            file.write("<!DOCTYPE html>\n<p>mine</p>")
        self.assert_one_error(run(*self.export("html", output)), 1, "is no HTML file")
        self.assertEqual(os.path.getsize(output), 27)


class UsageTest(ExportTest):
    def test_what_is_missing_or_unknown_is_named(self):
        self.assert_one_error(run("export", "--model", self.model), 2, "--output")
        self.assert_one_error(run("export", "--output", self.path("m.pt")), 2, "--model")
        self.assert_one_error(run(*self.export("torchscipt", self.path("m.pt"))), 2, "torchscript")
        self.assert_one_error(run("export", "--model", self.model, "--out_dir", self.path("m.pt")), 2, "did you mean '--output'?")
        self.assert_one_error(run(*self.export("torchscript", self.path("m.pt"), "--verfy")), 2, "--verify")
        self.assert_one_error(run(*self.export("torchscript", self.path("m.pt"), model=self.path("no"))), 1, self.path("no"))
        self.assert_only("model")


if __name__ == "__main__":
    unittest.main()
