"""tzoo train: a run from start to end, its resumption after every kind of end, and its refusals."""

import json
import math
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import PROGRAM, WITHOUT_BFLOAT16, CommandTest, run

TEXT = "".join(f"the {a} {b} of the {c}\n" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")) * 30


def flags(folder, text, **more):
    values = dict(
        dataset=text, tokenizer="char", n_layer=2, n_head=2, n_embd=16, block_size=16, batch_size=4, dropout=0.1,
        bias="false", learning_rate=1e-2, min_lr=1e-3, warmup_iters=5, max_iters=60, eval_interval=20, eval_iters=2,
        log_interval=1, threads=1, out_dir=folder)
    values.update(more)
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


class TrainTest(CommandTest):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)

    def train(self, name, **more):
        result = run("train", *flags(self.folder / name, self.text, **more))
        self.assertEqual(result.code, 0, result.err)
        return self.folder / name

    def finish(self, *words):
        result = run(*words)
        self.assertEqual(result.code, 0, result.err)

    def weights(self, folder):
        return (folder / "final/model.safetensors").read_bytes()

    def metrics(self, folder):
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def test_a_run_learns_and_leaves_what_the_contract_names(self):
        folder = self.train("run")
        metrics = self.metrics(folder)
        self.assertEqual([m["iter"] for m in metrics], list(range(61)))
        for key in ("train_loss", "lr", "ms_per_iter", "tokens_per_second"):
            self.assertTrue(all(key in m for m in metrics), key)
        self.assertEqual([m["iter"] for m in metrics if "val_loss" in m], [0, 20, 40, 60])
        self.assertLess(metrics[-1]["val_loss"], metrics[0]["val_loss"] - 0.5)
        for name in ("final", "best", "checkpoints/step-00000020", "checkpoints/step-00000060"):
            for file in ("config.json", "model.safetensors", "tokenizer.json"):
                self.assertTrue((folder / name / file).exists(), f"{name}/{file}")
        self.assertEqual((folder / "loss.png").read_bytes()[:4], b"\x89PNG")
        self.assertEqual(json.loads((folder / "run_config.json").read_text())["n_layer"], 2)
        self.assertEqual(json.loads((folder / "final/config.json").read_text())["vocab_size"], len(set(TEXT)))

    def test_a_run_repeats_itself_and_another_seed_does_not(self):
        first, second, third = self.train("a"), self.train("b"), self.train("c", seed=7)
        self.assertEqual(self.weights(first), self.weights(second))
        self.assertNotEqual(self.weights(first), self.weights(third))

    def test_any_number_of_threads_trains_the_same_weights(self):
        sizes = dict(n_head=4, n_embd=64, block_size=64, batch_size=8, bias="true", max_iters=5)
        one, *others = [self.weights(self.train(f"of-{threads}", threads=threads, **sizes)) for threads in (1, 2, 3)]
        self.assertEqual([weights == one for weights in others], [True, True])

    def test_resumed_after_kills_it_ends_as_if_nothing_had_been(self):
        whole = self.train("whole", max_iters=200)
        folder = self.folder / "killed"
        words = flags(folder, self.text, max_iters=200)
        start = ["scratch"]
        kills = 0
        for wanted in (3, 25, 70, 145):  # before the first checkpoint, and in later stretches
            process = subprocess.Popen([PROGRAM, "train", *words, "--init_from", start[0]], stderr=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL)
            log = folder / "metrics.jsonl"
            while process.poll() is None:
                if log.exists() and f'"iter":{wanted},' in log.read_text():
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.002)
            kills += process.wait() == -signal.SIGKILL
            start[0] = "resume"
        self.assertGreater(kills, 1)
        self.finish("train", *words, "--init_from", "resume")
        self.assertEqual(self.weights(whole), self.weights(folder))
        self.assertEqual([m["iter"] for m in self.metrics(folder)], list(range(201)))
        losses = lambda path: [(m["train_loss"], m.get("val_loss")) for m in self.metrics(path)]
        self.assertEqual(losses(whole), losses(folder))

    def test_a_signal_writes_a_checkpoint_and_the_flags_need_not_be_repeated(self):
        whole = self.train("whole", max_iters=200)
        for number in (signal.SIGTERM, signal.SIGHUP):
            folder = self.folder / number.name
            process = subprocess.Popen([PROGRAM, "train", *flags(folder, self.text, max_iters=200)],
                                       stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if line.startswith("iter 33:"):
                    process.send_signal(number)
                    break
            rest = process.stderr.read()
            self.assertEqual(process.wait(), 128 + number)
            self.assertIn("--init_from resume", rest)
            process.stderr.close()
            self.finish("train", "--init_from", "resume", "--out_dir", folder)
            self.assertEqual(self.weights(whole), self.weights(folder))

    def test_ctrl_c_does_not_wait_for_the_end_of_an_evaluation(self):
        folder = self.folder / "run"
        words = flags(folder, self.text, eval_iters=100_000)  # minutes
        process = subprocess.Popen([PROGRAM, "train", *words], stderr=subprocess.PIPE, text=True)
        while not (folder / "metrics.jsonl").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn(f"stopping: a checkpoint is saved in {folder}/checkpoints", err)
        self.finish("train", "--init_from", "resume", "--out_dir", folder, "--eval_iters", 2)
        self.assertEqual(self.weights(folder), self.weights(self.train("whole")))

    def test_on_a_terminal_the_last_words_do_not_run_into_the_bar(self):
        reader, writer = pty.openpty()
        words = flags(self.folder / "run", self.text, max_iters=100_000, eval_interval=100_000)
        process = subprocess.Popen([PROGRAM, "train", *words], stderr=writer, stdout=subprocess.DEVNULL,
                                   env={**os.environ, "TERM": "xterm"})
        os.close(writer)
        shown, sent = b"", False
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # a terminal's end of file
                break
            shown += piece
            if not sent and b" left" in shown:
                process.send_signal(signal.SIGINT)
                sent = True
        os.close(reader)
        self.assertEqual(process.wait(), 128 + signal.SIGINT)
        lines = re.split(rb"\r\x1b\[K|\r\n", shown)
        self.assertTrue(any(line.startswith(b"stopped after iteration") for line in lines), shown[-600:])
        self.assertTrue(any(line.startswith(b"stopping: ") for line in lines), shown[-600:])

    def test_tokens_per_parameter_choose_the_number_of_updates(self):
        folder, words = self.folder / "run", flags(self.folder / "run", self.text, tokens_per_parameter=0.5, bias="true")
        place = words.index("--max_iters")
        self.assert_one_error(run("train", *words), 2, "--tokens_per_parameter sets --max_iters")
        del words[place : place + 2]
        done = run("train", *words)
        self.assertEqual(done.code, 0, done.err)
        with open(folder / "final/model.safetensors", "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        parameters = sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
        updates = math.ceil(0.5 * parameters / (4 * 16))
        self.assertIn(f"{updates} updates read 0.5 tokens for each of {parameters:,} parameters\n", done.err)
        self.assertEqual(self.metrics(folder)[-1]["iter"], updates)
        self.assertEqual(json.loads((folder / "run_config.json").read_text())["max_iters"], updates)
        self.assert_one_error(run("train", "--task", "classification", "--dataset", self.text, "--tokens_per_parameter", 1,
                                  "--out_dir", folder), 2, "--tokens_per_parameter")

    def test_depth_chooses_sizes_and_rates_which_flags_beside_it_change(self):
        folder, words = self.folder / "run", ["--depth", 1, "--dataset", self.text, "--out_dir", self.folder / "run"]
        words += ["--batch_size", 2, "--block_size", 32, "--eval_iters", 1, "--eval_interval", 10]
        self.finish("train", *words, "--max_iters", 10)
        config = json.loads((folder / "run_config.json").read_text())
        expected = {"model_type": "qwen3", "n_layer": 1, "n_head": 1, "n_embd": 64, "n_inner": 192, "optimizer": "muon",
                    "max_iters": 10, "block_size": 32, "depth": None, "tokens_per_parameter": None}
        self.assertEqual({key: config[key] for key in expected}, expected)
        self.assertAlmostEqual(config["learning_rate"], 6e-3)
        self.assertAlmostEqual(config["min_lr"], 2e-4)
        self.finish("train", "--init_from", "resume", "--out_dir", folder, "--max_iters", 12)
        self.finish("train", *words, "--max_iters", 1, "--n_embd", 32, "--overwrite")
        config = json.loads((folder / "run_config.json").read_text())
        self.assertEqual((config["n_embd"], config["n_inner"]), (32, 96))
        self.assertAlmostEqual(config["learning_rate"], 3e-3 * math.sqrt(256 / 32))
        for more, error in ((["--recipe", "kjv-char"], "--depth sets what --recipe does"),
                            (["--init_from", folder / "final"], "--depth: a checkpoint has its own sizes"),
                            (["--task", "mlm"], "--depth: only for the task lm, not mlm")):
            self.assert_one_error(run("train", *words, *more), 2, error)

    def test_a_new_decoder_trains_every_character(self):
        # transformers' default pad_token_id of these is 0 or 1, the newline or the space; it trains no padding.
        for family in ("gemma", "olmo2", "nanochat"):
            run = self.train(family, model_type=family, max_iters=1)
            self.assertIsNone(json.loads((run / "final/config.json").read_text())["pad_token_id"], family)

    def test_a_tuned_nanochat_goes_on(self):
        # Its activation is a choice of the flags, and its norms take the same kernels after loading.
        first, whole, half = (self.folder / name for name in ("first", "whole", "half"))
        self.train(first, model_type="nanochat", max_iters=2, eval_interval=2)
        words = ["train", "--init_from", first / "final", "--dataset", self.text, "--block_size", 16, "--batch_size", 4, "--threads", 1,
                 "--eval_iters", 1, "--eval_interval", 2, "--lr_decay_iters", 4]
        self.finish(*words, "--max_iters", 4, "--out_dir", whole)
        self.finish(*words, "--max_iters", 2, "--out_dir", half)
        self.finish("train", "--init_from", "resume", "--out_dir", half, "--max_iters", 4)
        self.assertEqual(self.weights(half), self.weights(whole))

    def test_skipped_spikes_are_counted(self):
        folder = self.train("run", skip_spikes=1.2, max_iters=120)
        counts = [m["skipped_updates"] for m in self.metrics(folder)]
        self.assertEqual(counts[:50], [0] * 50)
        self.assertGreater(counts[-1], 0)
        self.assertEqual(counts, sorted(counts))

    def test_the_last_row_of_the_metrics_is_measured_as_the_others(self):
        *_, before, last = self.metrics(self.train("run"))
        self.assertEqual((before["iter"], last["iter"]), (59, 60))
        for key in ("train_loss", "ms_per_iter", "tokens_per_second", "grad_norm"):
            self.assertEqual(last[key], before[key], key)  # of the last update

    def test_too_large_a_model_is_refused_before_it_is_built(self):
        huge = run("train", *flags(self.folder / "run", self.text, n_embd=65536, n_layer=400, n_head=8))
        self.assert_one_error(huge, 1, "weights take", "TB of memory", "available", "--n_layer")
        self.assertFalse((self.folder / "run").exists())

    def test_a_refused_allocation_names_its_size(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

        words = flags(self.folder / "run", self.text, n_embd=128, block_size=512, batch_size=65536, threads=1)
        done = subprocess.run([PROGRAM, "train", *words], capture_output=True, text=True, preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^error: out of memory: [\d.]+ GB could not be allocated; .*--batch_size")

    def test_a_full_disk_ends_the_run_and_loses_no_checkpoint(self):
        folder = self.train("run", max_iters=20, lr_decay_iters=40)
        before = (folder / "checkpoints/step-00000020/model.safetensors").read_bytes()

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        words = flags(folder, self.text, max_iters=40, lr_decay_iters=40)
        done = subprocess.run([PROGRAM, "train", *words, "--init_from", "resume"], capture_output=True,
                              text=True, preexec_fn=limit)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        self.assertEqual((done.returncode, len(errors)), (1, 1), done.stderr)
        self.assertIn("cannot write", errors[0])
        self.assertEqual((folder / "checkpoints/step-00000020/model.safetensors").read_bytes(), before)
        self.finish("train", *words, "--init_from", "resume")
        self.assertEqual(self.weights(folder), self.weights(self.train("other", max_iters=40, lr_decay_iters=40)))

    def test_a_penalty_on_like_heads_adds_to_the_loss_of_training_alone(self):
        short = {"max_iters": 2, "eval_interval": 2, "dropout": 0.0}
        plain = self.metrics(self.train("none", **short))
        for kind in ("positions", "subspaces", "outputs"):
            weighed = [self.metrics(self.train(f"{kind}{weight}", disagreement=kind, disagreement_weight=weight, **short))
                       for weight in (0, 1, 2)]
            first = [metrics[0]["train_loss"] for metrics in weighed]
            self.assertAlmostEqual(first[0], plain[0]["train_loss"], places=4)
            self.assertAlmostEqual(first[2] - first[1], first[1] - first[0], places=4)
            self.assertGreater(first[1] - first[0], 0.05)
            self.assertLessEqual(first[1] - first[0], 1.0001)
            self.assertAlmostEqual(weighed[2][0]["val_loss"], plain[0]["val_loss"], places=4)
        alone = run("train", *flags(self.folder / "alone", self.text), "--n_head", 1, "--disagreement", "outputs")
        self.assert_one_error(alone, 2, "--disagreement", "one head")
        saving = run("train", *flags(self.folder / "saving", self.text), "--disagreement", "outputs", "--activation_checkpointing")
        self.assert_one_error(saving, 2, "--activation_checkpointing", "--disagreement")

    def test_it_starts_from_a_checkpoint(self):
        folder = self.train("first")
        result = run("train", *flags(self.folder / "second", self.text), "--init_from", folder / "final")
        self.assertEqual(result.code, 0, result.err)
        first, second = self.metrics(folder), self.metrics(self.folder / "second")
        self.assertAlmostEqual(second[0]["val_loss"], first[-1]["val_loss"], places=5)
        # What it does not know stays behind, and is named.
        self.assertNotIn("does not have", result.err)
        for name in "processor_config.json", "onnx/model.onnx", ".gitattributes", "tf_model.h5":
            (folder / "final" / name).parent.mkdir(exist_ok=True)
            (folder / "final" / name).write_text("{}")
        result = run("train", *flags(self.folder / "third", self.text), "--init_from", folder / "final", "--max_iters", 1)
        self.assertIn(f"note: of {folder / 'final'}, the trained model does not have onnx, processor_config.json\n", result.err)

    def test_a_resumed_run_refuses_what_it_cannot_change_and_stays_as_it_was(self):
        folder = self.train("run", max_iters=20)
        files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        resume = ["train", "--init_from", "resume", "--out_dir", folder, "--max_iters", 30]
        for name, value, started in (("optimizer", "sgd", "adamw"), ("optimizer", "lion", "adamw"), ("lora_rank", 4, 0), ("ema_decay", 0.9, 0),
                                     ("n_layer", 3, 2), ("model_type", "llama", "unset"), ("dropout", 0.2, 0.1), ("bias", "true", "false"),
                                     ("tokenizer", "byte", "char"), ("seed", 3, 1337), ("batch_size", 8, 4)):
            with self.subTest(name=name, value=value):
                self.assert_one_error(run(*resume, f"--{name}", value), 1, f"--{name} {value} (at its start: {started}")
        self.assert_one_error(run(*resume, "--n_layer", 3, "--n_head", 4), 1, "--n_layer 3", "--n_head 4")
        # What was made of the text is a checkpoint that another text does not fit.
        self.text.write_text(TEXT[:-40] + TEXT[:40])
        self.assert_one_error(run(*resume), 1, "--dataset", "text.txt", "changed", "step-00000020")
        self.text.write_text(TEXT)
        held_out = self.folder / "held_out.txt"
        held_out.write_text(TEXT)
        other = self.train("other", max_iters=20, val_dataset=held_out)
        held_out.write_text(TEXT[40:])
        self.assert_one_error(run("train", "--init_from", "resume", "--out_dir", other, "--max_iters", 30), 1,
                              "--val_dataset", "held_out.txt has changed")
        self.assertEqual({path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"},
                         {path: data for path, data in files.items() if path.name != ".lock"})
        moved = self.folder / "moved.txt"
        self.text.rename(moved)
        self.finish(*resume, "--dataset", moved, "--optimizer", "adamw", "--n_layer", 2, "--learning_rate", 1e-3)
        self.assertEqual(self.metrics(folder)[-1]["iter"], 30)

    def test_a_checkpoint_decides_its_model(self):
        first = self.train("first", max_iters=1)
        start = ["train", "--dataset", self.text, "--block_size", 16, "--max_iters", 1, "--eval_iters", 1, "--threads", 1,
                 "--init_from", first / "final", "--out_dir", self.folder / "second"]
        for name, value, own in (("n_layer", 8, 2), ("n_head", 4, 2), ("n_embd", 32, 16), ("n_inner", 32, 64), ("n_kv_head", 1, 2),
                                 ("dropout", 0.3, 0.1), ("bias", "true", "false"), ("activation", "relu", "gelu_new"),
                                 ("initializer_range", 0.5, 0.02), ("model_type", "llama", "gpt2"), ("tokenizer", "byte_bpe", "char"),
                                 ("vocab_size", 300, len(set(TEXT)))):
            with self.subTest(name=name):
                self.assert_one_error(run(*start, f"--{name}", value), 1, "--init_from", "first/final", f"--{name} {value} (its own: {own})")
        config = self.folder / "eight.json"
        config.write_text('{"n_layer": 8}')
        self.assert_one_error(run(*start, "--config", config), 1, "--n_layer 8 (its own: 2)")
        for flag in ("--n_expert", "--n_expert_used"):
            self.assert_one_error(run(*start, flag, 4), 2, flag, "first/final", "has no mixture of experts")
        self.assert_one_error(run("train", *flags(self.folder / "second", self.text, model_type="foo")), 2, "--model_type", "unknown model_type 'foo'")
        self.assertFalse((self.folder / "second").exists())
        self.finish(*start, "--tokenizer", first / "final", "--n_layer", 2, "--dropout", 0.1, "--no_bias")
        recorded = json.loads((self.folder / "second/run_config.json").read_text())
        self.assertEqual([recorded[name] for name in ("n_layer", "n_embd", "vocab_size", "bias")], [2, 16, len(set(TEXT)), False])
        self.finish("train", "--config", self.folder / "second/run_config.json", "--out_dir", self.folder / "third")

    def test_what_belongs_to_a_model_outlives_its_training_and_each_export(self):
        start = pathlib.Path(write_checkpoint(self.folder / "start", tokenizer=True, bos_token_id=3, eos_token_id=[5, 7], summary_type="mean",
                                              torch_dtype="float32", generation={"eos_token_id": [5, 7], "pad_token_id": 0, "temperature": 0.3, "top_p": 0.8}))
        (start / "additional_chat_templates").mkdir()
        for name in ("chat_template.jinja", "additional_chat_templates/tool_use.jinja", "special_tokens_map.json", "tokenizer_config.json",
                     "added_tokens.json", "source.spm", "spm.model", "sentence_bert_config.json", "config_sentence_transformers.json"):
            (start / name).write_text("{}")
        (start / "modules.json").write_text('[{"path": ""}, {"path": "1_Pooling"}]')
        (start / "1_Pooling").mkdir()
        (start / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
        beside = {path.relative_to(start): path.read_bytes() for path in start.rglob("*.*")
                  if path.is_file() and path.name != "model.safetensors" and path != start / "config.json"}
        config = json.loads((start / "config.json").read_text())

        def assert_kept(folder):
            found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
            self.assertEqual({name: found.get(name) for name in beside}, beside, folder)
            kept = json.loads(found[pathlib.Path("config.json")])
            self.assertEqual({key: kept.get(key) for key in config}, config, folder)

        text = self.folder / "chars.txt"
        text.write_text("abc def ghi. " * 40)
        run_folder = self.folder / "run"
        self.finish("train", "--init_from", start, "--dataset", text, "--block_size", 8, "--max_iters", 2, "--eval_interval", 1, "--eval_iters", 1,
                    "--threads", 1, "--out_dir", run_folder)
        for model in ("final", "best", "checkpoints/step-00000002"):
            assert_kept(run_folder / model)
        self.finish("train", "--init_from", "resume", "--out_dir", run_folder, "--max_iters", 3)
        assert_kept(run_folder / "final")
        self.finish("export", "--model", run_folder / "final", "--format", "huggingface", "--output", self.folder / "exported")
        assert_kept(self.folder / "exported")
        self.finish("export", "--model", run_folder / "final", "--format", "packed", "--weights", "float32", "--output", self.folder / "packed")
        assert_kept(self.folder / "packed")

    def test_samples_are_shown_and_change_nothing(self):
        plain, folder = self.train("plain"), self.folder / "sampled"
        words = flags(folder, self.text, sample_interval=25, sample_prompt="the")
        result = run("train", *words)
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"sample after 25 iterations:\n  the")
        self.assertEqual(result.err.count("sample after"), 2)
        self.assertEqual(self.weights(folder), self.weights(plain))
        refused = run("train", "--task", "mlm", *flags(self.folder / "mlm", self.text, sample_interval=5, tokenizer="wordpiece", bias="true"))
        self.assert_one_error(refused, 2, "--sample_interval", "--task lm")

    def test_where_bfloat16_is_float32_it_is_said(self):
        folder, plain = self.folder / "bfloat16", self.folder / "float32"
        result = run("train", *flags(folder, self.text, max_iters=3, dtype="bfloat16"), ZOO_KERNELS=WITHOUT_BFLOAT16)
        self.assertIn("--dtype bfloat16 computes in float32", result.err)
        result = run("train", *flags(plain, self.text, max_iters=3), ZOO_KERNELS=WITHOUT_BFLOAT16)
        self.assertNotIn("bfloat16", result.err)
        self.assertEqual(self.weights(folder), self.weights(plain))
        result = run("train", *flags(self.folder / "rounded", self.text, max_iters=3, dtype="bfloat16"), ZOO_KERNELS="portable")
        self.assertNotIn("computes in float32", result.err)
        self.assertNotEqual(self.weights(self.folder / "rounded"), self.weights(plain))

    def test_the_last_words_say_how_to_use_the_model(self):
        result = run("train", *flags(self.folder / "run", self.text, max_iters=1))
        self.assertIn(f"use it: tzoo generate --model {self.folder}/run/final --prompt TEXT\n", result.err)

    def test_an_early_end_is_explained_and_the_better_model_is_named(self):
        backwards, folder = self.folder / "backwards.txt", self.folder / "run"
        backwards.write_text(TEXT[::-1])  # what is learnt from TEXT soon makes it less likely
        result = run("train", *flags(folder, self.text, val_dataset=backwards, early_stopping_patience=2, eval_interval=5, max_iters=500))
        losses = [m["val_loss"] for m in self.metrics(folder) if "val_loss" in m][1:]
        self.assertLess(len(losses), 100)
        self.assertIn(f"stopped early: 2 evaluations in a row without a validation loss below {min(losses):.6g} (--early_stopping_patience)", result.err)
        self.assertIn(f"validation loss {losses[-1]:.6g} after {5 * len(losses)} iterations: model in {folder}/final\n", result.out)
        self.assertIn(f"best validation loss {min(losses):.6g}: model in {folder}/best\n", result.out)
        self.assertIn(f"use it: tzoo generate --model {folder}/best --prompt TEXT\n", result.err)
        again = run("train", "--init_from", "resume", "--out_dir", folder)
        self.assertIn(f"finished already; to go on: tzoo train --init_from resume --out_dir {folder} --early_stopping_patience 0\n", again.err)
        # The same where it ended between evaluations.
        end = 5 * len(losses) - 3
        self.train("short", val_dataset=backwards, early_stopping_patience=2, eval_interval=5, max_iters=end, lr_decay_iters=500)
        last = self.metrics(self.folder / "short")[-1]["val_loss"]
        again = run("train", "--init_from", "resume", "--out_dir", self.folder / "short", "--max_iters", 500)
        self.assertIn(f"validation loss {last:.6g} after {end} iterations", again.out)

    def test_a_finished_run_says_how_to_go_on(self):
        folder = self.train("run", max_iters=1)
        again = run("train", "--init_from", "resume", "--out_dir", folder)
        self.assertEqual(again.code, 0, again.err)
        self.assertIn(f"finished already; to go on: tzoo train --init_from resume --out_dir {folder} --max_iters N, above 1\n", again.err)
        self.assertNotIn("finished already", run("train", "--init_from", "resume", "--out_dir", folder, "--max_iters", 2).err)

    def test_commands_to_paste_quote_the_directory_and_a_finished_run_keeps_its_record(self):
        folder = self.folder / "a run's"
        result = run("train", *flags(folder, self.text, max_iters=2, eval_interval=2))
        words = shlex.split(result.err.splitlines()[-1].removeprefix("use it: "))
        self.assertEqual(words[:4], ["tzoo", "generate", "--model", f"{folder}/final"])
        record = self.metrics(folder)
        again = run("train", "--init_from", "resume", "--out_dir", folder)
        self.assertIn(["tzoo", "train", "--init_from", "resume", "--out_dir", str(folder), "--max_iters", "N,", "above", "2"],
                      [shlex.split(line.removeprefix("the run had finished already; to go on: ")) for line in again.err.splitlines() if "go on" in line])
        self.assertEqual(self.metrics(folder), record)

    def test_a_vocabulary_smaller_than_asked_for_is_noted(self):
        folder = self.folder / "run"
        result = run("train", *flags(folder, self.text, max_iters=0, tokenizer="byte_bpe", vocab_size=8000))
        size = json.loads((folder / "final/config.json").read_text())["vocab_size"]
        self.assertLess(size, 8000)
        self.assertIn(f"note: --vocab_size 8000: the text has enough for {size} tokens only\n", result.err)
        made = run("tokenizer", "train", "--kind", "byte_bpe", "--input", self.text, "--vocab_size", 8000, "--out_dir", self.folder / "made")
        self.assertIn("note: --vocab_size 8000: the text has enough for ", made.err)
        prepared = run("data", "prepare", self.text, "--tokenizer", "byte_bpe", "--vocab_size", 8000, "--out_dir", self.folder / "tokens")
        self.assertIn("note: --vocab_size 8000: the text has enough for ", prepared.err)
        exact = run("train", *flags(self.folder / "exact", self.text, max_iters=0, tokenizer="byte_bpe", vocab_size=260))
        self.assertNotIn("note: --vocab_size", exact.err)

    def test_a_dry_run_needs_no_folder_and_keeps_the_one_it_gets(self):
        folder = self.train("run")
        before = sorted(folder.rglob("*"))
        words = [word for word in flags(folder, self.text) if word not in ("--out_dir", str(folder))]
        for more in ([], ["--out_dir", str(folder)]):
            result = run("train", "--dry_run", *words, *more)
            self.assertEqual(result.code, 0, result.err)
            self.assertRegex(result.out, r"\ntime of \d+ updates +\d+:\d\d\n")
        self.assertEqual(sorted(folder.rglob("*")), before)
        self.assert_one_error(run("train", *words), 2, "missing flag '--out_dir'")

    def test_heads_that_do_not_divide_the_width_are_named_by_their_flags(self):
        def refused(**sizes):
            return run("train", *flags(self.folder / "run", self.text, **sizes))

        self.assert_one_error(refused(n_embd=32, n_head=3), 2, "--n_embd 32", "--n_head 3")
        self.assert_one_error(refused(n_embd=32, n_head=4, n_kv_head=3, model_type="llama"), 2, "--n_head 4", "--n_kv_head 3")

    def test_two_runs_do_not_write_one_folder(self):
        words = ["train", *flags(self.folder / "run", self.text, max_iters=100000, eval_interval=20)]
        first = subprocess.Popen([PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(first.kill)
        while not (self.folder / "run/checkpoints/step-00000020").exists():
            self.assertIsNone(first.poll())
            time.sleep(0.05)
        for more in (["--overwrite"], ["--init_from", "resume"]):
            self.assert_one_error(run(*words, *more), 1, "is being written by process " + str(first.pid))
        first.kill()
        first.wait()
        newest = max(int(path.name[-8:]) for path in (self.folder / "run/checkpoints").glob("step-*"))
        self.finish("train", "--init_from", "resume", "--out_dir", self.folder / "run", "--max_iters", newest + 5)

    def test_a_checkpoint_of_another_version_is_refused_and_one_without_is_the_first(self):
        folder = self.train("run")
        path = folder / "checkpoints/step-00000060/trainer_state.json"
        state = json.loads(path.read_text())
        again = ["train", "--init_from", "resume", "--out_dir", folder, "--max_iters", 65]
        path.write_text(json.dumps({**state, "format_version": 2}))
        self.assert_one_error(run(*again), 1, "trainer_state.json", "format_version", "expected 1")
        self.assertEqual(state.pop("format_version"), 1)
        path.write_text(json.dumps(state))
        self.finish(*again)

    def test_refusals(self):
        text = self.text
        short = self.folder / "short.txt"
        short.write_text("abc")
        broken = self.folder / "broken.txt"
        broken.write_bytes(b"abc\n\xff\xfe")
        out = self.folder / "out"
        cases = [
            (2, ["train", "--max_iter", "3", "--out_dir", out], ["--max_iter", "--max_iters"]),
            (2, ["train", "--dataset", text], ["--out_dir"]),
            (1, ["train", *flags(out, "kjvv")], ["kjvv"]),
            (1, ["train", *flags(out, short)], ["training split", "block_size 16"]),
            (1, ["train", *flags(out, broken)], ["broken.txt", "UTF-8"]),
            (2, ["train", *flags(out, text), "--model_type", "gpt9"], ["gpt9", "gpt2"]),
            (2, ["train", *flags(out, text), "--model_type", "tutorial-embeddings", "--activation", "gelu"], ["--activation", "tutorial-embeddings"]),
            (1, ["train", *flags(out, text), "--init_from", "resume"], ["resume", "out"]),
            (1, ["train", *flags(out, text), "--init_from", "nowhere"], ["--init_from", "nowhere"]),
            (1, ["train", *flags("/proc/nothing", text)], ["/proc/nothing"]),
            (2, ["train", *flags(out, text), "--dropout", "1.5"], ["--dropout"]),
            (2, ["train", *flags(out, text), "--batch_size", "999999999"], ["--batch_size", "65536"]),
            (2, ["train", *flags(out, text), "--eval_iters", "999999999"], ["--eval_iters", "100000"]),
            (2, ["train", *flags(out, text), "--gradient_accumulation_steps", "999999999"], ["--gradient_accumulation_steps", "4096"]),
        ]
        for code, words, expected in cases:
            with self.subTest(words=words[-2:]):
                self.assert_one_error(run(*words), code, *expected)
        self.assertFalse(out.exists())

    def test_a_run_config_that_was_changed_by_hand(self):
        folder = self.train("run", max_iters=20)
        path = folder / "run_config.json"
        config = json.loads(path.read_text())
        for change, words in (({"init_from": 3}, ["init_from: expected text", "3"]), ({"lora_rank": 2**31}, ["lora_rank", "65536", str(2**31)])):
            path.write_text(json.dumps({**config, **change}))
            result = run("train", "--init_from", "resume", "--out_dir", folder)
            self.assert_one_error(result, 2, "run_config.json", *words)

    def test_a_run_is_not_overwritten_unasked(self):
        folder = self.train("run", max_iters=20)
        before = self.weights(folder)
        words = flags(folder, self.text, max_iters=20, seed=3)
        self.assert_one_error(run("train", *words), 1, "--overwrite", "resume")
        self.assertEqual(self.weights(folder), before)
        self.finish("train", *words, "--overwrite")
        self.assertNotEqual(self.weights(folder), before)
        for part in "checkpoints", "final":
            shutil.rmtree(folder / part)
        self.assert_one_error(run("train", *words), 1, "already holds a run")  # best/ is left of it
        other = self.folder / "other"
        (other / "tensorboard").mkdir(parents=True)
        self.assert_one_error(run("train", *flags(other, self.text)), 1, "'tensorboard'", "--overwrite")

    def test_a_config_file_may_be_given_again_to_go_on(self):
        base = self.train("base", max_iters=20)
        config = self.folder / "config.json"
        config.write_text(json.dumps({"init_from": str(base / "final"), "dataset": str(self.text), "max_iters": 10, "eval_interval": 10, "block_size": 16}))
        words = ["train", "--config", config, "--out_dir", self.folder / "tuned", "--threads", 1]
        self.finish(*words)
        self.finish(*words, "--init_from", "resume", "--max_iters", 20)
        self.assertEqual(self.metrics(self.folder / "tuned")[-1]["iter"], 20)


if __name__ == "__main__":
    unittest.main()
