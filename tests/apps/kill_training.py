#!/usr/bin/env python3
"""Ends a short training at random moments until it is done, and looks that nothing is ever lost.

    TZOO=build/apps/tzoo python3 tests/apps/kill_training.py [ENDS] [SEED] [kill]

Three of five ends are kill -9, one is Ctrl-C, one a disk that is full at a random size of a file; with the word "kill"
all are kill -9. After each of them every file of every checkpoint must be whole, and none that was there may be gone
except a newer one. The run has dropout, an accumulation, an average of the weights and a shuffled table; at its end
the weights must be those of a run that nobody has ended.
"""

import collections
import json
import pathlib
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tzoo_runner import PROGRAM as TZOO

KEPT = 2  # step checkpoints
FLAGS = ("--task seq2seq --block_size 8 --n_layer 1 --n_head 2 --n_embd 16 --dropout 0.1 --batch_size 4 --ema_decay 0.99 "
         f"--gradient_accumulation_steps 4 --eval_interval 5 --eval_iters 1 --log_interval 1 --threads 1 --keep_checkpoints {KEPT}").split()


def check_tensors(path):
    """The file is as long as its header says, and the header says where each tensor is."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    assert ends and max(ends) + 8 + size == len(data), path


def check_files(folder, names):
    assert names <= {path.name for path in folder.iterdir()}, folder
    for path in folder.iterdir():
        if path.suffix == ".safetensors":
            check_tensors(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())


class Run:
    """A training in a folder, which can be gone on with."""

    def __init__(self, folder, table, iterations):
        self.folder = folder
        self.words = [TZOO, "train", *FLAGS, "--dataset", str(table), "--max_iters", str(iterations), "--out_dir", str(folder)]
        self.newest, self.had_best = -1, False

    def start(self, **keywords):
        begun = (self.folder / "run_config.json").exists()
        words = [*self.words, "--init_from", "resume" if begun else "scratch"]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **keywords)

    def finish(self):
        process = self.start()
        _, said = process.communicate()
        assert process.returncode == 0, said
        self.check()

    def steps(self):
        return sorted((self.folder / "checkpoints").glob("step-*"))

    def check(self):
        model = {"model.safetensors", "config.json"}
        steps = self.steps()
        for folder in steps:
            check_files(folder, model | {"trainer_state.json", "optimizer.safetensors", "rng.safetensors", "average.safetensors"})
        newest = int(steps[-1].name[5:]) if steps else -1
        assert newest >= self.newest, f"step {self.newest} is lost, the newest is {newest}"
        # A step more than are kept may be there, of a kill between the writing and the removing.
        assert len(steps) <= KEPT + 1, steps
        # Where the disk cannot exchange two names, a kill may leave the one that was to be replaced beside its place.
        best = next((best for best in (self.folder / "best", self.folder / ".best.tmp-old") if best.exists()), None)
        assert best or not self.had_best, "best/ is lost"
        for folder in (best, self.folder / "final"):
            if folder and folder.exists():
                check_files(folder, model)
        self.newest, self.had_best = newest, best is not None

    def weights(self):
        return [(self.folder / name / "model.safetensors").read_bytes() for name in ("final", "best")]


def end_after(process, seconds, wanted):
    """Sends the signal after a while. True if that ended it, false if it was at its end before."""
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(wanted)
        _, said = process.communicate()
    code = process.returncode
    # Before it listens, Ctrl-C ends it as it ends any program.
    ended = code in (-wanted, 128 + wanted)
    assert ended or code == 0, f"the run ended with {code}: {said}"
    return ended


def end_by_disk(run, chance):
    """True if the disk ended it."""
    size = chance.choice([chance.randrange(200, 4_000), chance.randrange(4_000, 100_000)])

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    process = run.start(preexec_fn=limit)
    _, said = process.communicate()
    errors = [line for line in said.splitlines() if line.startswith("error:")]
    assert process.returncode == (1 if errors else 0) and len(errors) <= 1, said
    return bool(errors)


def end_once(run, chance, ways):
    """Goes on with the run and ends it in one of the ways. What ended it, or None if it was done."""
    how = chance.choice(ways)
    if how == "full disk":
        ended = end_by_disk(run, chance)
    else:
        ended = end_after(run.start(), chance.uniform(0.1, 0.9), signal.SIGKILL if how == "kill" else signal.SIGINT)
    run.check()
    return how if ended else None


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    chance, began = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1), time.time()
    ways = ["kill"] if "kill" in sys.argv else ["kill", "kill", "kill", "Ctrl-C", "full disk"]
    ends, inside, runs = collections.Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        table = folder / "pairs.tsv"
        table.write_text("".join(f"{a} {b} {c}\t{c} {b}\n" for a in "abcde" for b in "fghi" for c in "jkl"))
        iterations = 10 * wanted
        whole = Run(folder / "whole", table, iterations)
        whole.finish()
        while sum(ends.values()) < wanted:
            run, how, runs = Run(folder / f"ended-{runs}", table, iterations), "", runs + 1
            while how is not None and sum(ends.values()) < wanted:
                how = end_once(run, chance, ways)
                ends[how] += how is not None
                # A run in the middle of an update has its gradients beside it.
                inside += how is not None and bool(run.steps()) and (run.steps()[-1] / "gradients.safetensors").exists()
            run.finish()
            assert run.weights() == whole.weights(), "the run has ended with other weights"
    ends.pop(None, None)
    said = ", ".join(f"{count} by {how}" for how, count in sorted(ends.items()))
    print(f"{sum(ends.values())} ends ({said}; {inside} times to go on in the middle of an accumulation) in {runs} runs, "
          f"{time.time() - began:.0f} s: no checkpoint lost, the same weights")


if __name__ == "__main__":
    main()
