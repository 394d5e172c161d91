"""Checksums in the files that tzoo writes: a flipped bit is noticed, with its file and tensor."""

import json
import os
import pathlib
import random
import shutil
import tempfile
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import CommandTest, run


def header_of(path):
    """The header, and where the tensors' bytes begin."""
    file = path.read_bytes()
    begin = 8 + int.from_bytes(file[:8], "little")
    return json.loads(file[8:begin]), begin


def tensor_at(path, place):
    header, begin = header_of(path)
    for name, entry in header.items():
        if name != "__metadata__" and entry["data_offsets"][0] <= place - begin < entry["data_offsets"][1]:
            return name
    raise AssertionError(place)


class Checksums(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def flip(self, path, place, bit):
        file = bytearray(path.read_bytes())
        file[place] ^= 1 << bit
        path.write_bytes(file)

    def check_flips(self, path, count, *words, only_data=False):
        """Each flip ends `words` with the name of the file, and of the tensor if it is in one's bytes."""
        whole, (_, begin) = path.read_bytes(), header_of(path)
        chance = random.Random(path.name)
        for _ in range(count):
            in_data = only_data or chance.random() < 0.7
            place = chance.randrange(begin, len(whole)) if in_data else chance.randrange(begin)
            named = [f"'{tensor_at(path, place)}'"] if in_data else []
            self.flip(path, place, chance.randrange(8))
            with self.subTest(path.name, place=place, words=words[:2]):
                self.assert_one_error(run(*words), 1, path.name, *named)
            path.write_bytes(whole)

    def test_packed_directories(self):
        write_checkpoint(self.folder / "model", tokenizer=True)
        for weights in ("float32", "int4"):
            packed = self.folder / weights
            self.succeed("export", "--model", self.folder / "model", "--format", "packed", "--weights", weights, "--output", packed)
            self.assertRegex(self.succeed("inspect", packed, "--verify"), "packed.safetensors +equal to its checksums")
            self.check_flips(packed / "packed.safetensors", 12, "inspect", packed, "--verify")

    def test_exported_directories(self):
        write_checkpoint(self.folder / "model", tokenizer=True)
        again = self.folder / "again"
        self.succeed("export", "--model", self.folder / "model", "--format", "huggingface", "--output", again)
        self.assertEqual(json.loads(self.succeed("inspect", again, "--verify", "--json"))["verified"], {"model.safetensors": True})
        self.check_flips(again / "model.safetensors", 10, "inspect", again, "--verify")

    def test_checkpoints_are_verified_before_a_run_resumes(self):
        (self.folder / "text.txt").write_text("the cat sat on the mat. " * 100)
        words = ["train", "--dataset", self.folder / "text.txt", "--tokenizer", "char", "--out_dir", self.folder / "run", "--n_layer", 1,
                 "--n_head", 2, "--n_embd", 16, "--block_size", 8, "--batch_size", 2, "--eval_interval", 2, "--eval_iters", 1,
                 "--ema_decay", 0.9, "--threads", 1]
        begun = run(*words, "--max_iters", 2)
        self.assertEqual(begun.code, 0, begun.err)
        step = self.folder / "run/checkpoints/step-00000002"
        found = json.loads(self.succeed("inspect", step, "--verify", "--json"))["verified"]
        names = sorted(path.name for path in step.glob("*.safetensors"))
        self.assertGreater(len(names), 3)
        self.assertEqual(found, dict.fromkeys(names, True))
        kept = self.folder / "kept"
        shutil.copytree(self.folder / "run", kept)
        for name in names:
            self.check_flips(step / name, 3, *words, "--init_from", "resume", "--max_iters", 4)
        # Nothing was written meanwhile.
        for path in kept.rglob("*"):
            if path.is_file() and path.name != ".lock":
                self.assertEqual(path.read_bytes(), (self.folder / "run" / path.relative_to(kept)).read_bytes(), path)
        self.check_flips(self.folder / "run/final/model.safetensors", 3, "train", *words[1:5], "--init_from", self.folder / "run/final",
                         "--out_dir", self.folder / "other", "--max_iters", 1, only_data=True)

    def test_files_of_other_programs_have_none(self):
        model = write_checkpoint(self.folder / "theirs", tokenizer=True)
        self.assertEqual(json.loads(self.succeed("inspect", model, "--verify", "--json"))["verified"], {"model.safetensors": None})
        self.assertRegex(self.succeed("inspect", model, "--verify"), "model.safetensors +has no checksums to compare with")
        self.assertNotIn("verified", json.loads(self.succeed("inspect", model, "--json")))
        self.flip(pathlib.Path(model, "model.safetensors"), os.path.getsize(pathlib.Path(model, "model.safetensors")) - 3, 0)
        self.succeed("inspect", model, "--verify")

    def test_an_older_file_of_ours_loads(self):
        write_checkpoint(self.folder / "model", tokenizer=True)
        packed = self.folder / "packed"
        self.succeed("export", "--model", self.folder / "model", "--format", "packed", "--weights", "int8", "--output", packed)
        words = ("generate", "--model", packed, "--prompt", "the cat", "--max_new_tokens", 5, "--json")
        expected = json.loads(self.succeed(*words))["ids"]
        path = packed / "packed.safetensors"
        header, begin = header_of(path)
        del header["__metadata__"]["crc32c"]
        text = json.dumps(header, separators=(",", ":"))
        text += " " * (begin - 8 - len(text))
        path.write_bytes(path.read_bytes()[:8] + text.encode() + path.read_bytes()[begin:])
        self.assertEqual(json.loads(self.succeed(*words))["ids"], expected)


if __name__ == "__main__":
    unittest.main()
