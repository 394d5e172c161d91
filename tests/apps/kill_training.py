#!/usr/bin/env python3
"""Kills a short training at random moments until it has ended, and looks that nothing is ever lost.

Run by hand, with the program in TZOO:  TZOO=build/apps/tzoo python3 tests/apps/kill_training.py [KILLS]

After each kill -9 the newest checkpoint must open (tzoo inspect), and no earlier iteration than before may be the
newest. At the end the weights must be those of a run that nobody has killed.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TZOO = os.environ["TZOO"]
FLAGS = ("--dataset reverse --task seq2seq --block_size 24 --n_layer 1 --n_head 2 --n_embd 32 --dropout 0.1 --batch_size 8 "
         "--gradient_accumulation_steps 2 --ema_decay 0.99 --eval_interval 10 --eval_iters 1 --log_interval 5 --threads 1").split()


def newest(run):
    steps = sorted((run / "checkpoints").glob("step-*")) if run.exists() else []
    return steps[-1] if steps else None


def train(run, iterations, start):
    words = [TZOO, "train", *FLAGS, "--max_iters", str(iterations), "--out_dir", str(run), "--init_from", start]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_once(run, iterations, chance):
    """Starts or goes on with the run and kills it after a while. False if it ended by itself."""
    before = newest(run)
    process = train(run, iterations, "resume" if (run / "run_config.json").exists() else "scratch")
    try:
        code = process.wait(timeout=chance.uniform(0.3, 2.5))
        assert code == 0, f"the run ended with {code}"
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    after = newest(run)
    assert before is None or after is not None and after.name >= before.name, f"{before} is lost"
    if after is not None:
        subprocess.run([TZOO, "inspect", str(after)], check=True, stdout=subprocess.DEVNULL)
    return True


def main():
    wanted, kills, chance, began = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 0, random.Random(1), time.time()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        iterations = 20 * wanted
        assert train(folder / "whole", iterations, "scratch").wait() == 0
        for round_number in range(1000):
            run = folder / f"killed-{round_number}"
            while kills < wanted and kill_once(run, iterations, chance):
                kills += 1
            assert train(run, iterations, "resume").wait() == 0
            same = [(folder / "whole/final/model.safetensors").read_bytes() == (run / "final/model.safetensors").read_bytes()]
            assert same == [True], "the killed run has ended with other weights"
            if kills >= wanted:
                break
    print(f"{kills} kills in {round_number + 1} runs, {time.time() - began:.0f} s: no checkpoint lost, the same weights at the end")


if __name__ == "__main__":
    main()
