"""PyTorch's torchrun starts tzoo train, and starts it again after a rank was killed."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["TZOO_PROGRAM"]
FLAGS = ("--tokenizer byte --n_layer 1 --n_head 2 --n_embd 16 --block_size 16 --batch_size 4 --max_iters 400 --eval_interval 20 --eval_iters 1 "
         "--log_interval 100 --threads 1").split()


def children(pid):
    return [int(word) for thread in pathlib.Path(f"/proc/{pid}/task").iterdir() for word in (thread / "children").read_text().split()]


class Torchrun(unittest.TestCase):
    def test_a_killed_rank_starts_again(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "text.txt").write_text("to be or not to be\n" * 100)
            train = [PROGRAM, "train", *FLAGS, "--dataset", str(folder / "text.txt"), "--out_dir"]
            subprocess.run([*train, str(folder / "own"), "--processes", "2"], check=True, capture_output=True)
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--max_restarts", "1", "--monitor_interval", "0.2", "--no_python"]
            with open(folder / "log", "w+", encoding="utf-8") as log:
                launcher = subprocess.Popen([*torchrun, *train, str(folder / "run")], stdout=log, stderr=log)
                while launcher.poll() is None and not list((folder / "run").glob("checkpoints/step-*")):
                    time.sleep(0.02)
                os.kill(children(launcher.pid)[1], signal.SIGKILL)
                status = launcher.wait(timeout=120)
                log.seek(0)
                self.assertEqual(status, 0, log.read())
                log.seek(0)
                self.assertEqual(log.read().count("2 ranks, started by torchrun"), 2)
            own, run = ((folder / run / "final/model.safetensors").read_bytes() for run in ("own", "run"))
            self.assertEqual(own, run)


if __name__ == "__main__":
    unittest.main()
