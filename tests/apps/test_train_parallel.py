"""tzoo train on several ranks, by each launcher: they learn what one process does with as large a batch, and end together."""

import contextlib
import fcntl
import hashlib
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from tzoo_runner import PROGRAM  # also the path to support/
from tier import SHORT

TEXT = "".join(f"the {a} {b} of the {c}\n" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")) * 20
SMALL = dict(tokenizer="char", n_layer=2, n_head=2, n_embd=16, block_size=16, learning_rate=1e-2, min_lr=1e-3, warmup_iters=2, adam_eps=1e-4,
             max_iters=12, eval_interval=6, eval_iters=2, log_interval=1, threads=1)
ENDLESS = dict(max_iters=1000000, eval_interval=20, lr_decay_iters=1000000)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("SLURM_", "OMPI_", "PMI_", "TORCHELASTIC_", "MASTER_")) and name not in ("RANK", "WORLD_SIZE")}


def free_port():
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def torchrun(rank, ranks, port):
    """The variables that torchrun without its own store, or Kubernetes, gives to a process."""
    return dict(RANK=rank, WORLD_SIZE=ranks, LOCAL_RANK=rank, MASTER_ADDR="localhost", MASTER_PORT=port)


def open_mpi(rank, ranks, port):
    return dict(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=ranks, OMPI_COMM_WORLD_LOCAL_RANK=rank, OMPI_COMM_WORLD_LOCAL_SIZE=ranks,
                MASTER_PORT=port)


def mpich(rank, ranks, port):
    return dict(PMI_RANK=rank, PMI_SIZE=ranks, MPI_LOCALRANKID=rank, MPI_LOCALNRANKS=ranks, MASTER_PORT=port)


def slurm(rank, ranks, port):
    return dict(SLURM_PROCID=rank, SLURM_NTASKS=ranks, SLURM_LOCALID=rank, SLURM_JOB_NODELIST="127.0.0.[1-3,7],gpu[02-12]",
                SLURM_JOB_ID=port, MASTER_PORT=port)


class ParallelTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def words(self, name, **more):
        values = {**SMALL, "dataset": self.text, "out_dir": self.folder / name, **more}
        return [PROGRAM, "train", *(str(word) for key, value in values.items() for word in (f"--{key}", value))]

    def start(self, words, cwd=None, stderr=subprocess.PIPE, **variables):
        environment = {**CLEAN, **{name: str(value) for name, value in variables.items()}}
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, cwd=cwd)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def finish(self, process):
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run_alone(self, words, **variables):
        return self.finish(self.start(words, **variables))

    def train(self, name, ranks, **more):
        """By tzoo's own launcher."""
        return self.run_alone(self.words(name, **(dict(processes=ranks) if ranks > 1 else {}), **more))

    def start_ranks(self, launcher, all_words, **more):
        port = free_port()
        return [self.start(words, **launcher(rank, len(all_words), port), **more) for rank, words in enumerate(all_words)]

    def losses(self, name):
        lines = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
        return [line["train_loss"] for line in lines]

    def weights(self, name):
        """What stands for the bytes of each file of tensors: a difference of megabytes would take minutes to print."""
        folder = self.folder / name
        return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.safetensors")}

    def assert_one_error(self, done, *words, code=1):
        self.assertEqual(done.returncode, code, done)
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower() or "Exception" in line or "frame #" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in ("error: ", *words):
            self.assertIn(word, lines[0])

    def assert_nothing_written(self, name="run"):
        self.assertFalse((self.folder / name).exists())

    def await_checkpoint(self, name, process, after=()):
        checkpoints, end = self.folder / name / "checkpoints", time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            found = set(checkpoints.glob("step-*")) if checkpoints.exists() else set()
            if found - set(after):
                return found
            time.sleep(0.02)
        self.fail(self.finish(process) if process.poll() is not None else "no checkpoint")

    def children(self, process):
        """Process ids of the ranks of tzoo's own launcher, by rank."""
        ids = {}
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, KeyError):  # the program has not begun, or has ended
                if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == process.pid:
                    variables = dict(word.split("=", 1) for word in (path / "environ").read_text().split("\0") if "=" in word)
                    ids[int(variables["RANK"])] = int(path.name)
        return ids

    def assert_goes_on(self, name, **more):
        """The last checkpoint of a run that was ended is whole."""
        last = max((self.folder / name / "checkpoints").glob("step-*"))
        done = self.train(name, 1, init_from="resume", max_iters=int(last.name[5:]) + 1, **more)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_launcher_equals_one_process_with_as_large_a_batch(self):
        self.assertEqual(self.train("one", 1, batch_size=12).returncode, 0)
        done = self.train("own", 2, batch_size=6)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {"own": done.stderr}
        for launcher in (torchrun, open_mpi) if SHORT else (torchrun, open_mpi, mpich, slurm):
            name = launcher.__name__
            ranks = [self.finish(process) for process in self.start_ranks(launcher, [self.words(name, batch_size=6)] * 2)]
            for rank in ranks:
                self.assertEqual(rank.returncode, 0, rank.stderr)
            self.assertEqual(ranks[1].stderr + ranks[1].stdout, "")
            said[name] = ranks[0].stderr
        whole, first = self.losses("one"), self.weights("own")
        self.assertTrue(any(path.name == "optimizer.safetensors" for path in first))
        for name, launcher in (("own", "tzoo train --processes"), ("torchrun", "the variables RANK and WORLD_SIZE"), ("open_mpi", "Open MPI's mpirun"),
                               ("mpich", "mpiexec"), ("slurm", "srun")):
            if name not in said:
                continue
            self.assertEqual(said[name].splitlines()[0], f"2 ranks, started by {launcher}")
            for a, b in zip(whole[:-1], self.losses(name)[:-1], strict=True):  # the last is of an evaluation, whose batches are smaller
                self.assertLessEqual(abs(a - b), 1e-6 * abs(a), name)
            self.assertEqual(self.weights(name), first, name)
        self.assertLess(whole[-2], whole[0] - 0.5)

    def test_ranks_and_micro_batches_equal_one_batch(self):
        for name, ranks, flags in (("one", 1, dict(batch_size=12)), ("three", 3, dict(batch_size=4)),
                                   ("two-steps", 2, dict(batch_size=3, gradient_accumulation_steps=2))):
            done = self.train(name, ranks, **flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("Warning", done.stderr)
            for a, b in zip(self.losses("one")[:-1], self.losses(name)[:-1], strict=True):
                self.assertLessEqual(abs(a - b), 1e-6 * abs(a), name)

    def test_two_ranks_go_on_from_a_checkpoint(self):
        cases = [("adamw", "divided", dict(shard_optimizer="true")), ("adamw", "half", {}),
                 ("muon", "divided-muon", dict(shard_optimizer="true"))]
        for whole, name, more in cases[:1] if SHORT else cases:
            if not (self.folder / whole).exists():
                self.assertEqual(self.train(whole, 2, batch_size=4, optimizer=whole).returncode, 0)
            flags = dict(batch_size=4, lr_decay_iters=12, optimizer=whole, **more)
            self.assertEqual(self.train(name, 2, max_iters=6, **flags).returncode, 0)
            done = self.train(name, 2, init_from="resume", **flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(*((self.folder / run / "final/model.safetensors").read_bytes() for run in (whole, name)), name)

    def test_a_divided_optimizer_writes_the_same_bytes(self):
        # Each optimizer; Adafactor's state has other shapes than the weights.
        for optimizer in ("adafactor", "muon") if SHORT else ("adamw", "adafactor", "muon"):
            flags = dict(batch_size=4, optimizer=optimizer, ema_decay=0.9, adam_eps=1e-8)
            self.assertEqual(self.train(f"{optimizer}-whole", 2, **flags).returncode, 0)
            done = self.train(f"{optimizer}-divided", 2, **flags, shard_optimizer="true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.weights(f"{optimizer}-whole"), self.weights(f"{optimizer}-divided"))

    def test_one_process_has_no_ranks_to_divide_among(self):
        done = self.train("alone", 1, batch_size=4, shard_optimizer="true")
        self.assert_one_error(done, "--shard_optimizer", code=2)
        self.assert_nothing_written("alone")

    def pairs(self):
        table = self.folder / "pairs.tsv"
        table.write_text("source\ttarget\n" + "".join(f"{'abc'[i % 3]}{i % 7}\t{i % 7}{'abc'[i % 3]}\n" for i in range(80)))
        return table

    def test_shards_learn_what_one_process_does(self):
        # A decoder and an encoder-decoder, whose embeddings are also the weights of its head; all gradients are clipped.
        clipped = dict(grad_clip=0.1)
        seq2seq = dict(task="seq2seq", model_type="t5", dataset=self.pairs(), optimizer="muon", max_iters=6, **clipped)
        cases = [("lm", clipped, 12, 3, dict(batch_size=4)), ("seq2seq", seq2seq, 12, 2, dict(batch_size=3, gradient_accumulation_steps=2)),
                 ("steps", dict(optimizer="muon", **clipped), 16, 4, dict(batch_size=2, gradient_accumulation_steps=2))]
        for name, flags, rows, ranks, share in cases[:2] if SHORT else cases:
            self.assertEqual(self.train(name, 1, batch_size=rows, **flags).returncode, 0)
            one = self.tensors(self.folder / name / "final/model.safetensors")
            for shard in ("optimizer", "gradients", "weights"):
                run = f"{name}-{shard}"
                done = self.train(run, ranks, **flags, **share, shard=shard)
                self.assertEqual(done.returncode, 0, done.stderr)
                for a, b in zip(self.losses(name)[:-1], self.losses(run)[:-1], strict=True):
                    self.assertLessEqual(abs(a - b), 1e-6 * abs(a), run)
                several = self.tensors(self.folder / run / "final/model.safetensors")
                self.assertLess(max(abs(a - b) for weight in one for a, b in zip(one[weight], several[weight], strict=True)), 1e-5, run)
            self.assertEqual(self.weights(f"{name}-gradients"), self.weights(f"{name}-weights"))

    def test_shards_go_on_from_a_checkpoint_of_others(self):
        flags = dict(batch_size=4, lr_decay_iters=12)
        self.assertEqual(self.train("whole", 2, **flags).returncode, 0)
        for name, first, then in (("gradients", "weights", "gradients"), ("weights", "none", "weights")):
            self.assertEqual(self.train(name, 2, max_iters=6, shard=first, **flags).returncode, 0)
            done = self.train(name, 2, init_from="resume", shard=then, **flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            for checkpoint in ("step-00000006", "step-00000012"):  # of two ranks without accumulation the sums are the same
                self.assertEqual(*(self.weights(f"{run}/checkpoints/{checkpoint}") for run in ("whole", name)), name)
        # With one process nothing is divided.
        done = self.train("weights", 1, init_from="resume", **{**flags, "max_iters": 13})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_does_not_fit_shards(self):
        for words, flags in ((("--shard: not with --local_steps",), dict(shard="gradients", local_steps=3)),
                             (("--dtype: not with --shard gradients",), dict(shard="gradients", dtype="float16")),
                             (("--layer_norms: not with --shard gradients",), dict(shard="gradients", layer_norms="true")),
                             (("--ema_decay: not with --shard weights",), dict(shard="weights", ema_decay=0.9)),
                             (("--sample_interval: not with --shard weights",), dict(shard="weights", sample_interval=3)),
                             (("--disagreement: not with --shard weights",), dict(shard="weights", disagreement="outputs")),
                             (("--shard weights: not for a model that leaves layers out",),
                              dict(shard="weights", task="seq2seq", model_type="m2m_100", dataset=self.pairs()))):
            self.assert_one_error(self.train("run", 2, **flags), *words, code=2)
            self.assert_nothing_written()
        # Rank 0 fits, and hears it from rank 1.
        all_words = [self.words("run", shard="gradients", **flags) for flags in ({}, dict(dtype="float16"))]
        told = self.finish(self.start_ranks(torchrun, all_words)[0])
        self.assert_one_error(told, "rank 1 on ", "--dtype: not with --shard gradients", code=2)
        self.assert_nothing_written()
        self.assert_one_error(self.train("run", 1, shard="weights"), "--shard divides among several ranks", code=2)
        self.assert_nothing_written()

    def test_a_killed_rank_is_named_by_those_that_wait_for_its_weights(self):
        for shard in ("weights",) if SHORT else ("gradients", "weights"):
            ranks = self.start_ranks(torchrun, [self.words(shard, **ENDLESS, rank_timeout=20, shard=shard)] * 3)
            self.await_checkpoint(shard, ranks[0])
            ranks[1].kill()
            for rank in (0, 2):
                self.assert_one_error(self.finish(ranks[rank]), f"rank 1 on {socket.gethostname()} has died")
            self.assert_goes_on(shard)

    def test_variables_that_disagree(self):
        words = self.words("run", master_addr="127.0.0.1")
        for code, named, variables in (
                (1, ("WORLD_SIZE is 2", "RANK is missing"), dict(WORLD_SIZE=2)),
                (1, ("RANK is 1", "WORLD_SIZE is missing"), dict(RANK=1)),
                (1, ("SLURM_NTASKS is 4", "SLURM_PROCID is missing"), dict(SLURM_NTASKS=4)),
                (1, ("RANK is 2", "WORLD_SIZE 2"), dict(RANK=2, WORLD_SIZE=2)),
                (1, ("PMI_SIZE 'two'",), dict(PMI_RANK=0, PMI_SIZE="two")),
                (1, ("torchrun has started 2", "SLURM_NTASKS says 4"), dict(RANK=0, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="x", SLURM_PROCID=0, SLURM_NTASKS=4)),
                (1, ("MV2_COMM_WORLD_SIZE is 2", "MV2_COMM_WORLD_RANK is missing"), dict(MV2_COMM_WORLD_SIZE=2)),
                (1, ("FLUX_TASK_RANK is 1", "FLUX_JOB_SIZE is missing"), dict(FLUX_TASK_RANK=1)),
                (1, ("flux run has started 3", "PMI_SIZE says 4"), dict(FLUX_TASK_RANK=0, FLUX_JOB_SIZE=3, PMI_RANK=0, PMI_SIZE=4)),
                (1, ("PALS_RANKID is 1", "PMI_RANK"), dict(PALS_RANKID=1)),
                (1, ("SLURM_STEP_NUM_TASKS is 2", "1 process"), dict(SLURM_STEP_NUM_TASKS=2, SLURM_NTASKS=1, SLURM_PROCID=0)),
                (1, ("LOCAL_WORLD_SIZE is 2",), dict(LOCAL_WORLD_SIZE=2, RANK=0, WORLD_SIZE=1)),
                (1, ("MASTER_PORT 'x'",), dict(RANK=0, WORLD_SIZE=2, MASTER_PORT="x"))):
            self.assert_one_error(self.run_alone(words, **variables), *named, code=code)
        self.assert_one_error(self.run_alone(self.words("run"), RANK=0, WORLD_SIZE=2), "--master_addr", "MASTER_ADDR")
        self.assert_one_error(self.run_alone([*words, "--processes", "2"], SLURM_PROCID=0, SLURM_NTASKS=2), "--processes 2", "srun", code=2)
        self.assert_nothing_written()
        alone = self.run_alone(self.words("run", max_iters=1), RANK=0, WORLD_SIZE=1)
        self.assertEqual(alone.returncode, 0, alone.stderr)

    def test_ranks_that_do_not_meet(self):
        words = self.words("run", rank_timeout=1)
        port = free_port()
        self.assert_one_error(self.run_alone(words, **torchrun(0, 3, port)), "ranks 1, 2 of 3", f"localhost:{port}", "1 s")
        self.assert_one_error(self.run_alone(words, **torchrun(1, 2, port)), "rank 1", "no answer from rank 0", f"localhost:{port}")
        with socket.create_server(("", port)):  # it accepts connections, and says nothing
            self.assert_one_error(self.run_alone(words, **torchrun(0, 2, port)), f"--master_port {port}", "in use")
            self.assert_one_error(self.run_alone(words, **torchrun(1, 2, port)), f"localhost:{port}", "is not rank 0")
        self.assert_nothing_written()

    def test_two_processes_are_not_one_rank(self):
        port = free_port()
        first, other = (self.start(self.words("run", rank_timeout=4), **torchrun(1, 3, port)) for _ in range(2))
        zero = self.start(self.words("run", rank_timeout=4), **torchrun(0, 3, port))
        self.assert_one_error(self.finish(zero), "rank 2 of 3")
        ends = sorted((self.finish(process) for process in (first, other)), key=lambda done: "another process is rank 1" not in done.stderr)
        self.assert_one_error(ends[0], "another process is rank 1", "--master_port")
        self.assert_one_error(ends[1], "rank 2 of 3")
        self.assert_nothing_written()

    def test_ranks_that_would_train_something_else(self):
        same = self.words("run")
        for name, other, variables in (("--batch_size is 4, not 12", self.words("run", batch_size=4), {}),
                                       ("instruction set is portable", same, dict(ZOO_KERNELS="portable"))):
            port = free_port()
            ranks = [self.start(same, **torchrun(0, 2, port)), self.start(other, **torchrun(1, 2, port), **variables)]
            for process in ranks:
                self.assert_one_error(self.finish(process), f"rank 1 on {socket.gethostname()}", name)
            self.assert_nothing_written()

    def test_other_files_on_a_rank(self):
        for rank, seed in enumerate((1, 2)):
            folder = self.folder / str(rank)
            folder.mkdir()
            self.assertEqual(self.train(folder / "start", 1, max_iters=0, seed=seed).returncode, 0)
            (folder / "text.txt").write_text(TEXT + "new" * rank)
            (folder / "same.txt").write_text(TEXT)
        run = dict(max_iters=1, threads=1, out_dir=self.folder / "run")
        for name, flags in (("the hash of the initial weights", dict(run, init_from="start/final", dataset="same.txt", block_size=16)),
                            ("the hash of the data", {**SMALL, **run, "dataset": "text.txt"})):
            port = free_port()
            words = [PROGRAM, "train", *(str(word) for key, value in flags.items() for word in (f"--{key}", value))]
            for process in [self.start(words, cwd=self.folder / str(rank), **torchrun(rank, 2, port)) for rank in (0, 1)]:
                self.assert_one_error(self.finish(process), "rank 1 on ", name)
            self.assert_nothing_written()

    def test_a_rank_that_fails_ends_all(self):
        self.assertEqual(self.train("run", 2, batch_size=4).returncode, 0)
        done = self.train("run", 2, batch_size=4)  # there is a run already
        self.assert_one_error(done, "--overwrite")
        # Only rank 1 does not find its text.
        shutil.copy(self.text, self.folder / "0.txt")
        words = [self.words("other", dataset=self.folder / f"{rank}.txt") for rank in (0, 1)]
        ends = [self.finish(process) for process in self.start_ranks(torchrun, words)]
        self.assert_one_error(ends[1], "1.txt")
        self.assert_one_error(ends[0], "rank 1 on ", "1.txt")
        self.assert_nothing_written("other")

    def test_a_killed_rank_is_named_by_the_others(self):
        for killed in (1,) if SHORT else (0, 1):
            name = f"run{killed}"
            ranks = self.start_ranks(torchrun, [self.words(name, **ENDLESS, rank_timeout=20)] * 2)
            self.await_checkpoint(name, ranks[0])
            ranks[killed].kill()
            began = time.monotonic()
            self.assert_one_error(self.finish(ranks[1 - killed]), f"rank {killed} on {socket.gethostname()} has died")
            self.assertLess(time.monotonic() - began, 20)
            self.assert_goes_on(name)

    def tensors(self, path):
        """The numbers of a file of float32 tensors, by name."""
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        header.pop("__metadata__", None)
        return {name: struct.unpack(f"<{(entry['data_offsets'][1] - entry['data_offsets'][0]) // 4}f",
                                    data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]) for name, entry in header.items()}

    def test_gradients_travel_in_bfloat16(self):
        self.assertEqual(self.train("start", 1, max_iters=0).returncode, 0)
        start = self.tensors(self.folder / "start/final/model.safetensors")

        def gradients(wire):
            """The update of SGD with a rate of 1."""
            flags = dict(dataset=self.text, block_size=16, init_from=self.folder / "start/final", max_iters=1, threads=1, eval_iters=1, optimizer="sgd",
                         momentum=0, weight_decay=0, grad_clip=0, learning_rate=1, decay_lr="false", gradient_wire=wire, processes=2,
                         out_dir=self.folder / wire)
            done = self.run_alone([PROGRAM, "train", *(str(word) for key, value in flags.items() for word in (f"--{key}", value))])
            self.assertEqual(done.returncode, 0, done.stderr)
            after = self.tensors(self.folder / wire / "final/model.safetensors")
            return [(a - b, max(abs(a), abs(b))) for name in start for a, b in zip(start[name], after[name], strict=True)]

        def rounded(number):
            """To 8 binary digits."""
            mantissa, exponent = math.frexp(number)
            return math.ldexp(round(mantissa * 256), exponent - 8)

        whole, halved = gradients("float32"), gradients("bfloat16")
        self.assertTrue(all(abs(change - rounded(change)) <= weight * 2**-23 for change, weight in halved))
        self.assertGreater(sum(abs(change - rounded(change)) > weight * 2**-23 for change, weight in whole), len(whole) / 4)
        difference = math.hypot(*(a - b for (a, _), (b, _) in zip(whole, halved, strict=True)))
        self.assertLess(difference, math.hypot(*(change for change, _ in whole)) * 2**-7)

    def test_local_steps_of_one_process_and_of_one_update_are_ordinary_training(self):
        plain = dict(outer_learning_rate=1, outer_momentum=0)
        self.assertEqual(self.train("one", 1, batch_size=4).returncode, 0)
        done = self.train("one-local", 1, batch_size=4, local_steps=3, **plain)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(*((self.folder / run / "final/model.safetensors").read_bytes() for run in ("one", "one-local")))
        # Without momentum and clipping, the mean of the weights after an update is an update by the mean of the gradients.
        sgd = dict(batch_size=4, optimizer="sgd", adam_eps=1e-8, momentum=0, grad_clip=0, learning_rate=0.1)
        self.assertEqual(self.train("two", 2, **sgd).returncode, 0)
        done = self.train("two-local", 2, **sgd, local_steps=1, **plain)
        self.assertEqual(done.returncode, 0, done.stderr)
        for a, b in zip(self.losses("two"), self.losses("two-local"), strict=True):
            self.assertLessEqual(abs(a - b), 1e-6 * abs(a))

    def test_local_steps_of_two_launchers(self):
        flags = dict(batch_size=4, local_steps=3)
        done = self.train("own", 2, **flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("checkpoints/step-00000012/optimizer-1.safetensors", {str(path) for path in self.weights("own")})
        ranks = [self.finish(process) for process in self.start_ranks(torchrun, [self.words("torchrun", **flags)] * 2)]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], ranks)
        self.assertEqual(self.weights("own"), self.weights("torchrun"))
        self.assertLess(self.losses("own")[-1], self.losses("own")[0] - 0.3)
        # The differences travel in bfloat16, too: the first outer update moves each weight by the same, to 8 binary digits.
        done = self.train("halved", 2, **flags, gradient_wire="bfloat16")
        self.assertEqual(done.returncode, 0, done.stderr)
        for a, b in zip(self.losses("own"), self.losses("halved"), strict=True):
            self.assertLessEqual(abs(a - b), 1e-3 * abs(a))
        self.assertNotEqual(self.weights("own"), self.weights("halved"))

    def test_local_steps_go_on_inside_of_a_round(self):
        flags = dict(batch_size=4, local_steps=100, max_iters=1000000, eval_interval=100, lr_decay_iters=1000)
        updates, more, earlier = 0, {}, []
        while updates % 100 == 0:  # it may stop at a round's end
            launcher = self.start(self.words("stopped", **flags, **more, processes=2))
            self.await_checkpoint("stopped", launcher, after=earlier)
            launcher.send_signal(signal.SIGINT)
            done = self.finish(launcher)
            self.assertEqual(done.returncode, 128 + signal.SIGINT, done.stderr)
            earlier = list((self.folder / "stopped/checkpoints").glob("step-*"))
            updates, more = int(done.stderr.split("stopped after iteration ")[1].split(";")[0]), dict(init_from="resume")
        flags["max_iters"] = (updates // 100 + 1) * 100
        self.assertEqual(self.train("whole", 2, **flags).returncode, 0)
        self.assert_one_error(self.train("stopped", 1, **flags, init_from="resume"), "--local_steps", "another number of ranks than 1")
        self.assert_one_error(self.train("stopped", 2, **{**flags, "local_steps": 50}, init_from="resume"), "--local_steps 50 (at its start: 100)")
        done = self.train("stopped", 2, **flags, init_from="resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(*((self.folder / run / "final/model.safetensors").read_bytes() for run in ("whole", "stopped")))

    def test_what_does_not_fit_local_steps(self):
        for words, flags in ((("--max_iters 10: ", "--local_steps 3"), dict(max_iters=10, local_steps=3)),
                             (("--eval_interval 6: ", "--local_steps 4"), dict(local_steps=4)),
                             (("--sample_interval 5: ", "--local_steps 3"), dict(local_steps=3, sample_interval=5)),
                             (("--ema_decay: not with --local_steps",), dict(local_steps=3, ema_decay=0.9)),
                             (("--shard_optimizer: not with --local_steps",), dict(local_steps=3, shard_optimizer="true")),
                             (("--outer_momentum: only with --local_steps",), dict(outer_momentum=0.5))):
            self.assert_one_error(self.train("run", 2, **flags), *words, code=2)
            self.assert_nothing_written()

    def evaluations(self, name):
        lines = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
        return [{key: value for key, value in line.items() if key.startswith("val_")} for line in lines if "val_loss" in line]

    def test_ranks_share_an_evaluation(self):
        """With the weights of one process, the figures are those of one process, to the last digit."""
        table = self.folder / "table.jsonl"
        words = ("good", "fine", "bad", "poor")
        table.write_text("".join(json.dumps(dict(text=f"{a} {b} {c}", label=words[(3 * i + j) % 4], source=f"{a} {b}", target=f"{b} {c}")) + "\n"
                                 for i, a in enumerate(words) for j, b in enumerate(words) for c in words * 3))
        fixed = dict(max_iters=0, batch_size=2, eval_iters=5)
        cases = [("lm", dict()), ("classification", dict(dataset=table, tokenizer="wordpiece")), ("mlm", dict(tokenizer="wordpiece")),
                 ("seq2seq", dict(dataset=table))]
        for task, more in cases[:2] if SHORT else cases:
            for ranks in (1, 3):
                done = self.train(f"{task}{ranks}", ranks, task=task, **{**fixed, **more})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.evaluations(f"{task}{ranks}"), self.evaluations(f"{task}1"))

    def test_another_number_of_ranks_goes_on_with_the_same_batch(self):
        flags = dict(batch_size=4, lr_decay_iters=12)
        self.assertEqual(self.train("whole", 2, **flags).returncode, 0)
        self.assertEqual(self.train("run", 2, max_iters=6, **flags).returncode, 0)
        shutil.copytree(self.folder / "run", self.folder / "by-hand")
        self.assert_one_error(self.train("run", 3, init_from="resume", **flags), "step-00000006", "2 micro batches", "3 ranks cannot share")
        by_hand = self.train("by-hand", 1, init_from="resume", **flags)
        self.assertEqual(by_hand.returncode, 0, by_hand.stderr)
        self.assertIn("2 micro batches on each", by_hand.stderr)
        for a, b in zip(self.losses("whole"), self.losses("by-hand"), strict=True):
            self.assertLessEqual(abs(a - b), 1e-6 * abs(a))
        # One process alone stops inside an update.
        inside = self.folder / "inside"
        shutil.copytree(self.folder / "run", inside)
        state = inside / "checkpoints/step-00000006/trainer_state.json"
        for steps, ranks, said in ((1, 2, "saved inside of an update, by one process"), (2, 1, "says micro_steps 2, of 2")):
            state.write_text(json.dumps(json.loads(state.read_text()) | {"micro_steps": steps}))
            self.assert_one_error(self.train("inside", ranks, init_from="resume", **flags), said)
        # torchrun's elastic restart with one host less.
        (self.folder / "run/.launch").write_text("job")
        done = self.run_alone(self.words("run", **flags), **torchrun(0, 1, free_port()), TORCHELASTIC_RESTART_COUNT=1,
                              TORCHELASTIC_RUN_ID="job")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights("run"), self.weights("by-hand"))
        # The checkpoint knows the batch, not the process that wrote it.
        done = self.train("run", 2, init_from="resume", **{**flags, "max_iters": 14})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("micro batches on each", done.stderr)

    def test_layers_that_are_left_out_by_chance(self):
        for shard in ("none", "gradients"):
            done = self.train(shard, 2, task="seq2seq", model_type="m2m_100", dataset=self.pairs(), max_iters=40, shard=shard)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights("none"), self.weights("gradients"))

    def test_a_slow_rank_is_named(self):
        # Most of their time is in passes, so that few pauses are in what both wait for.
        flags = dict(ENDLESS, n_embd=64, block_size=64, batch_size=16, eval_interval=10, log_interval=10)
        ranks = self.start_ranks(torchrun, [self.words("run", **flags)] * 2)
        self.await_checkpoint("run", ranks[0])

        def waits():
            whole = (self.folder / "run/metrics.jsonl").read_text().rpartition("\n")[0]
            return [json.loads(line)["wait_ms"] for line in whole.splitlines()]

        def clearly_slower():
            """By more than another program on this machine can do to rank 0 alone."""
            first, second = (sum(wait[rank] for wait in waits()) for rank in (0, 1))
            return first > 2 * second + 300

        end = time.monotonic() + 60
        while not clearly_slower() and ranks[0].poll() is None:
            self.assertLess(time.monotonic(), end, waits())
            ranks[1].send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            ranks[1].send_signal(signal.SIGCONT)
            time.sleep(0.03)
        ranks[0].send_signal(signal.SIGINT)
        log = [self.finish(process) for process in ranks][0].stderr
        self.assertTrue(clearly_slower(), log)
        self.assertIn("ms waiting for rank 1\n", log)

    def test_a_failed_training_starts_again(self):
        flags = dict(max_iters=100 if SHORT else 200, eval_interval=20, batch_size=4)
        self.assertEqual(self.train("whole", 2, **flags).returncode, 0)
        for killed in (1,) if SHORT else (0, 1):
            name = f"killed{killed}"
            launcher = self.start(self.words(name, **flags, processes=2, restart=1))
            self.await_checkpoint(name, launcher)
            os.kill(self.children(launcher)[killed], signal.SIGKILL)
            done = self.finish(launcher)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"restart 1 of 1: rank {killed} on {socket.gethostname()} was killed by signal 9", done.stderr)
            self.assertEqual(*((self.folder / run / "final/model.safetensors").read_bytes() for run in ("whole", name)))
        # What is of the start alone does not keep it from going on: the run has what it set.
        file = self.folder / "deep.json"
        file.write_text('{"depth": 1}')
        for name, more in (("deep", ("--config", str(file))), ("deep-by-word", ("--depth", "1")))[:1 if SHORT else 2]:
            launcher = self.start([*self.words(name, **flags, processes=2, restart=1), *more])
            self.await_checkpoint(name, launcher)
            os.kill(self.children(launcher)[1], signal.SIGKILL)
            done = self.finish(launcher)
            self.assertEqual(done.returncode, 0, done.stderr)
        # The mark of an older launcher is gone before the first start can fail.
        self.assertTrue((self.folder / "deep/.launch").exists())
        done = self.run_alone(self.words("deep", **{**flags, "dataset": "none.txt"}), **torchrun(0, 1, free_port()),
                              TORCHELASTIC_RESTART_COUNT=0, TORCHELASTIC_RUN_ID="job")
        self.assertEqual((done.returncode, (self.folder / "deep/.launch").exists()), (1, False), done.stderr)
        # A run of before is none of this start: it is refused at each of its attempts, or with --overwrite replaced at the first.
        before = self.weights("whole")
        done = self.finish(self.start(self.words("whole", **flags, processes=2, restart=1, seed=3)))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("restart 1 of 1", done.stderr)
        self.assertEqual(self.weights("whole"), before)
        launcher = self.start([*self.words("whole", **flags, processes=2, restart=1), "--overwrite"])
        while (self.folder / "whole/final").exists() and launcher.poll() is None:
            time.sleep(0.02)
        self.await_checkpoint("whole", launcher)
        os.kill(self.children(launcher)[1], signal.SIGKILL)
        done = self.finish(launcher)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("step 0:", done.stderr.partition("restart 1 of 1")[2])
        self.assertEqual(self.weights("whole"), before)
        self.assert_one_error(self.run_alone(self.words("other", restart=1)), "--restart", "--processes", code=2)
        # No start mends a flag.
        self.assert_one_error(self.train("other", 2, restart=2, labels="a"), "error: --labels: only for the task ", code=2)
        # Rank 0, which waits to print its error, has told the other, which ends first.
        read, write = (open(end, mode, encoding="utf-8") for end, mode in zip(os.pipe(), ("r", "w")))
        begin, full = "2 ranks, started by tzoo train --processes\n", 4096
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, full)
        print("." * (full - len(begin)), end="", file=write, flush=True)
        launcher = self.start(self.words("other", processes=2, restart=2, documents="pack"), stderr=write)
        write.close()
        for ranks in ([0, 1], [0]):
            while sorted(self.children(launcher)) != ranks and launcher.poll() is None:
                time.sleep(0.02)
        with read:
            said = read.read().lstrip(".")
        self.assertEqual(launcher.wait(), 2, said)
        self.assertTrue(said.startswith(f"{begin}error: --documents pack: "), said)
        self.assertNotIn("restart", said)

    def test_a_rank_that_hangs_is_named_after_the_timeout(self):
        ranks = self.start_ranks(torchrun, [self.words("run", **ENDLESS, rank_timeout=2)] * 2)
        self.await_checkpoint("run", ranks[0])
        ranks[1].send_signal(signal.SIGSTOP)
        self.assert_one_error(self.finish(ranks[0]), "rank 1 on ", "no sign of life for 2 s")
        self.assert_goes_on("run")

    def test_a_killed_rank_ends_the_own_launcher(self):
        for killed in (0,) if SHORT else (0, 1):
            name = f"run{killed}"
            launcher = self.start(self.words(name, **ENDLESS, processes=2))
            self.await_checkpoint(name, launcher)
            ids = self.children(launcher)
            os.kill(ids[killed], signal.SIGKILL)
            self.assert_one_error(self.finish(launcher), f"rank {killed} on {socket.gethostname()} was killed by signal 9")
            self.assertFalse(pathlib.Path("/proc", str(ids[1 - killed])).exists())
            self.assert_goes_on(name)

    def test_ranks_end_with_their_launcher(self):
        launcher = self.start(self.words("run", **ENDLESS, processes=2))
        self.await_checkpoint("run", launcher)
        ids = self.children(launcher)
        self.assertEqual(len(ids), 2)
        launcher.kill()
        end = time.monotonic() + 30
        while any(pathlib.Path("/proc", str(id)).exists() for id in ids.values()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_signal_to_one_rank_ends_all_with_a_checkpoint(self):
        ranks = self.start_ranks(torchrun, [self.words("run", **ENDLESS)] * 2)
        before = self.await_checkpoint("run", ranks[0])
        ranks[1].send_signal(signal.SIGINT)
        ends = [self.finish(process) for process in ranks]
        self.assertEqual([done.returncode for done in ends], [128, 128 + signal.SIGINT], ends)
        self.assertIn("stopped after iteration", ends[0].stderr)
        self.assertTrue(set((self.folder / "run/checkpoints").glob("step-*")) - before)
        self.assert_goes_on("run")

    def test_all_ranks_stop_and_go_on_with_the_own_launcher(self):
        launcher = self.start(self.words("run", **ENDLESS, processes=2, rank_timeout=1))
        self.await_checkpoint("run", launcher)
        ids = [launcher.pid, *self.children(launcher).values()]
        launcher.send_signal(signal.SIGTSTP)
        states = lambda: {pathlib.Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()[0] for id in ids}
        end = time.monotonic() + 30
        while states() != {"T"}:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        time.sleep(2)  # longer than ranks wait for one another
        launcher.send_signal(signal.SIGCONT)
        self.await_checkpoint("run", launcher, after=set((self.folder / "run/checkpoints").glob("step-*")))
        launcher.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(launcher).returncode, 128 + signal.SIGINT)
        self.assert_goes_on("run")

    def test_the_own_launcher_passes_signals_on(self):
        for number in (signal.SIGTERM,) if SHORT else (signal.SIGINT, signal.SIGTERM):
            name = f"run{number}"
            launcher = self.start(self.words(name, **ENDLESS, processes=2))
            self.await_checkpoint(name, launcher)
            launcher.send_signal(number)
            done = self.finish(launcher)
            self.assertEqual(done.returncode, 128 + number, done.stderr)
            self.assertIn(f"--out_dir {self.folder / name} --processes 2\n", done.stderr)
            self.assert_goes_on(name)


if __name__ == "__main__":
    unittest.main()
