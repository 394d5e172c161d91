"""A command reads each file of a checkpoint once: counted by the kernel (inotify)."""

import collections
import ctypes
import os
import pathlib
import struct
import tempfile
import unittest

import tiny_checkpoint
from tzoo_runner import CommandTest, run

IN_OPEN, IN_NONBLOCK = 0x20, 0o4000


class Opened:
    """How often each file of a folder is opened inside a with block."""

    def __init__(self, folder):
        self.folder, self.libc = folder, ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        self.watch = self.libc.inotify_init1(IN_NONBLOCK)
        assert self.libc.inotify_add_watch(self.watch, os.fsencode(self.folder), IN_OPEN) >= 0, os.strerror(ctypes.get_errno())
        self.counts = collections.Counter()
        return self.counts

    def __exit__(self, *_):
        data, at = os.read(self.watch, 1 << 20), 0
        os.close(self.watch)
        while at < len(data):
            _, mask, _, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode()
            self.counts[name] += 1 if name else 0  # the folder itself has no name
            at += 16 + size


class ReadOnce(CommandTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "model"
        tiny_checkpoint.write_checkpoint(self.model, tokenizer=True)
        (self.model / "tokenizer_config.json").write_text("{}")  # the class then follows from config.json
        self.text = self.folder / "text.txt"
        self.text.write_text("abc cab bca " * 60)

    def test_each_file_is_opened_once(self):
        small = ["--batch_size", 2, "--max_iters", 1, "--eval_iters", 1, "--block_size", 8]
        ids = ["--input_ids", "[[1, 2]]"]
        for words in (
            ["generate", "--model", self.model, "--prompt", "abc", "--max_new_tokens", 2],
            ["evaluate", "--model", self.model, "--dataset", self.text, "--eval_iters", 1, "--block_size", 8],
            ["train", "--init_from", self.model, "--dataset", self.text, "--out_dir", self.folder / "run", *small],
            ["attention", "--model", self.model, "--text", "abc", "--out_dir", self.folder / "maps", "--format", "terminal"],
            ["forward", "--model", self.model, *ids, "--output", self.folder / "out.safetensors"],
            ["inspect", self.model],
        ):
            with self.subTest(verb=words[0]), Opened(self.model) as counts:
                done = run(*words)
            self.assertEqual(done.code, 0, done.err)
            wanted = {"config.json", "model.safetensors"} | ({"tokenizer_config.json"} if words[0] != "forward" else set())
            expected = dict.fromkeys(wanted, 1)
            if words[0] == "train":
                expected["tokenizer_config.json"] += 1  # to be copied as it is into every checkpoint
            self.assertEqual({name: counts[name] for name in wanted}, expected, words[0])


if __name__ == "__main__":
    unittest.main()
