"""Flags with values that nobody means: each command ends soon, without a signal, within 4 GB, with a line of its own.

    hostile_flags.py COUNT|all     COUNT cases, always the same ones
"""

import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile

from command_tree import commands
from tiny_checkpoint import write_checkpoint
from tzoo_runner import PROGRAM

VALUES = ["-1", "0", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e300", "-0.0", "nan",
          "inf", "", " ", "a", "-", ".", "/dev/zero", "/dev/null", "/nowhere/at/all", "\u00e9\u202e", "[[1]]", "{}", "a" * 100000]
SECONDS, BYTES = 20, 4 << 30


class Cases:
    def __init__(self, folder):
        self.folder, self.model = folder, str(write_checkpoint(os.path.join(folder, "model"), tokenizer=True))
        self.text = os.path.join(folder, "text.txt")
        with open(self.text, "w", encoding="utf-8") as file:
            file.write("the cat and the dog\n" * 60)
        self.pairs = os.path.join(folder, "pairs.tsv")
        with open(self.pairs, "w", encoding="utf-8") as file:
            file.write("anchor\tpositive\nthe cat\ta cat\nthe dog\ta dog\nthe light\tthe day\nearth\tthe earth\nin\tbeginning\n")
        self.number = 0

    def words(self, command):
        """What the command needs besides the flag, so that it would work."""
        self.number += 1
        model, out = ["--model", self.model], os.path.join(self.folder, f"out{self.number}")
        text = [*model, "--text", "the cat"]
        return {
            "train": ["--dataset", self.text, "--out_dir", out, "--max_iters", "1", "--eval_iters", "1", "--n_layer", "1", "--n_head", "2",
                      "--n_embd", "8", "--block_size", "8", "--batch_size", "2"],
            "generate": [*model, "--prompt", "the", "--max_new_tokens", "2"], "embed": text, "attention": text, "lens": text,
            "ablate": text, "patch": [*text, "--corrupted", "the dog"],
            "steer": [*model, "--toward", self.text, "--away", self.text, "--prompt", "the", "--max_new_tokens", "2"], "forward": [*model, "--input_ids", "[[1]]", "--output", out],
            "evaluate": [*model, "--dataset", self.text, "--block_size", "8"], "inspect": [self.model], "models": [self.model],
            "export": [*model, "--format", "huggingface", "--output", out], "data make": ["addition", "--count", "3"],
            "data prepare": [self.text, "--out_dir", out], "tokenizer encode": model, "tokenizer decode": model,
            "tokenizer train": ["--kind", "char", "--input", self.text, "--out_dir", out],
            "search": [*model, "--documents", self.text, "--query", "cat"],
            "data negatives": [*model, "--dataset", self.pairs, "--output", out],
            "bench decode": [*model, "--prompt_tokens", "2", "--new_tokens", "2", "--rounds", "1"],
        }.get(" ".join(command.words), [])

    def run(self, command, flag, value):
        words = self.words(command)
        if "--" + flag in words:
            at = words.index("--" + flag)
            del words[at : at + 2]
        words = [PROGRAM, *command.words, *words, f"--{flag}={value}"]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, cwd=self.folder,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES)))
        except subprocess.TimeoutExpired:
            return f"no end within {SECONDS} s"
        error = done.stderr.decode(errors="replace")
        if done.returncode not in (0, 1, 2):
            return f"exit {done.returncode}: {error[-300:]}"
        if done.returncode and (error.count("error:") != 1 or "out of memory" in error):
            return f"says {error[-300:]!r}"
        return None


def main():
    # Those that wait for a network or a client would not end, and measurements take their time.
    slow = {"serve", "pull", "demo", "bench compare", "bench encode", "bench t5", "bench train"}
    pairs = [(command, flag) for command in commands() for flag in command.flags
             if not slow & {command.words[0], " ".join(command.words)}]
    cases = [(*pair, value) for pair, value in itertools.product(pairs, VALUES)]
    if sys.argv[1] != "all":
        cases = random.Random(1).sample(cases, int(sys.argv[1]))
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Cases(folder)
        for command, flag, value in cases:
            fault = runner.run(command, flag, value)
            if fault:
                faults += 1
                print(f"{command.name} --{flag} {value[:60]!r}: {fault}", flush=True)
    print(f"{len(cases)} cases, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
