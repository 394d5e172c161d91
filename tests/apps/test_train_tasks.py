"""tzoo train and evaluate: each task from its file to a model that has learnt it, and files that are not right."""

import json
import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from tzoo_runner import PROGRAM, CommandTest, run

SMALL = dict(n_layer=1, n_head=2, n_embd=32, batch_size=8, warmup_iters=5, eval_interval=50, eval_iters=4, log_interval=10, threads=1,
             learning_rate=5e-3, min_lr=5e-4)


class TaskTest(CommandTest):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.random = random.Random(4)

    def write(self, name, lines):
        path = self.folder / name
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def words(self, name, **more):
        values = {**SMALL, "out_dir": self.folder / name, **more}
        return [word for key, value in values.items() for word in (f"--{key}", str(value))]

    def train(self, name, **more):
        result = run("train", *self.words(name, **more))
        self.assertEqual(result.code, 0, result.err)
        lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
        return json.loads(lines[-1])

    def evaluate(self, name, *words):
        result = run("evaluate", "--model", self.folder / name / "final", "--json", "--threads", 1, *words)
        self.assertEqual(result.code, 0, result.err)
        return json.loads(result.out)

    def reviews(self, count=120):
        good, bad = ("fine", "lovely", "great"), ("bad", "dull", "poor")
        pick = self.random.choice
        lines = [(f"the {pick(['film', 'book', 'meal'])} was {pick(good if i % 3 == 0 else bad)}", "pos" if i % 3 == 0 else "neg")
                 for i in range(count)]
        return lines


class EvaluateTest(TaskTest):
    def test_without_a_dataset_the_run_is_evaluated_as_it_was(self):
        table = self.write("reviews.tsv", ["\t".join(line) for line in self.reviews()])
        text = self.write("text.txt", ["abc bca cab"] * 60)
        for name, words in (("table", {"task": "classification", "dataset": table}), ("text", {"task": "lm", "dataset": text})):
            end = self.train(name, max_iters=20, block_size=8, **words)
            self.assertAlmostEqual(self.evaluate(name)["loss"], end["val_loss"], places=5)
        moved = self.folder / "moved"
        (self.folder / "text/final").rename(moved)
        self.assert_one_error(run("evaluate", "--model", moved), 2, "--dataset", "moved")

    def test_flags_without_an_effect_are_refused(self):
        table = self.write("reviews.tsv", ["\t".join(line) for line in self.reviews()])
        self.train("run", task="classification", dataset=table, max_iters=1, block_size=8, label_smoothing=0.1)
        self.evaluate("run")
        named = ("evaluate", "--model", self.folder / "run/final", "--dataset", table)
        for words, said in ((["--label_smoothing", 0.5], "is of training"), (["--class_weights", "balanced"], "is of training"),
                            (["--tokenizer", "char"], "tokenizer of its own"), (["--mlm_probability", 0.2], "only for the task mlm"),
                            (["--target_size", 4], "only for the task"), (["--query_prompt_name", "q"], "only for the task embedding")):
            with self.subTest(flag=words[0]):
                self.assert_one_error(run(*named, *words), 2, words[0], said)

    def without_names(self, name):
        """A copy of the model whose classes have no names, as those of many published models."""
        shutil.copytree(self.folder / name / "final", self.folder / "plain/final")
        path = self.folder / "plain/final/config.json"
        config = json.loads(path.read_text())
        names = [name for _, name in sorted(config["id2label"].items(), key=lambda entry: int(entry[0]))]
        labels = {str(i): f"LABEL_{i}" for i in range(len(names))}
        path.write_text(json.dumps(config | {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}}))
        return names

    def test_a_head_without_names_knows_its_classes_by_number(self):
        lines = [(f"{word} {word}", name) for word, name in zip("king sea tree house red old new dog cat fish bird corn".split(), "abcdefghijkl")]
        table = self.write("named.tsv", ["\t".join(line) for line in lines * 12])
        self.train("run", task="classification", dataset=table, val_dataset=table, block_size=8, max_iters=60, eval_interval=60)
        names = self.without_names("run")
        self.assertGreater(self.evaluate("run", "--dataset", table)["accuracy"], 0)
        for rows in (lines, lines[2:9:6]):  # c and i alone
            known = self.evaluate("run", "--dataset", self.write("known.tsv", ["\t".join(line) for line in rows]))
            for prefix in ("", "LABEL_"):
                numbered = self.write("numbered.tsv", [f"{text}\t{prefix}{names.index(name)}" for text, name in rows])
                found = self.evaluate("plain", "--dataset", numbered)
                self.assertEqual((found["loss"], found["accuracy"]), (known["loss"], known["accuracy"]))
        named = ("evaluate", "--model", self.folder / "plain/final", "--dataset", table)
        self.assert_one_error(run(*named), 1, "line 1: unknown label 'a'", "LABEL_11")
        self.assertEqual(run(*named, *(word for name in names for word in ("--labels", name))).code, 0)
        self.assert_one_error(run(*named, "--labels", "a", "--labels", "b"), 2, "--labels: the model has 12 classes, got 2")

    def test_nor_does_the_order_of_tags_without_names_depend_on_the_data(self):
        tags = ["Anna\tB-PER", "lives\tO", "Rome\tB-LOC", ""]
        table = self.write("tags.tsv", tags * 30)
        self.train("run", task="token_classification", dataset=table, block_size=8, vocab_size=60, max_iters=20)
        names = self.without_names("run")
        known = self.evaluate("run", "--dataset", self.write("two.tsv", tags[1:] * 3))
        numbered = [line if not line else f"{line.split()[0]}\t{names.index(line.split()[1])}" for line in tags[1:] * 3]
        self.assertEqual(self.evaluate("plain", "--dataset", self.write("numbered.tsv", numbered))["loss"], known["loss"])

    def test_a_run_does_not_replace_what_it_begins_with(self):
        table = self.write("reviews.tsv", ["\t".join(line) for line in self.reviews(24)])
        self.train("run", task="classification", dataset=table, block_size=8, max_iters=1)
        for given in ("final", "best", "checkpoints/step-00000001"):
            words = ("--task", "classification", "--dataset", table, "--max_iters", 2, "--init_from", self.folder / "run" / given)
            self.assert_one_error(run("train", *words, "--out_dir", self.folder / "run", "--overwrite"), 2, "--init_from", given, "would replace it")
            self.assertTrue((self.folder / "run/final/model.safetensors").exists())

    def test_numbers_as_labels_are_classes_in_their_order(self):
        pairs = [(f"w{i}", i) for i in range(12)]
        table = self.write("numbers.jsonl", [json.dumps({"text": text, "label": label}) for text, label in pairs * 6])
        tags = self.write("tags.jsonl", [json.dumps({"tokens": [text] * 2, "labels": [label, 0]}) for text, label in pairs * 6])
        for task, data in (("classification", table), ("token_classification", tags)):
            self.train(task, task=task, dataset=data, block_size=8, max_iters=1)
            config = json.loads((self.folder / task / "final/config.json").read_text())
            self.assertEqual(config["id2label"], {str(i): str(i) for i in range(12)})

    def test_a_text_that_validates_a_table_is_a_text(self):
        table = self.write("texts.jsonl", [json.dumps({"text": "ab " * (1 + i % 5)}) for i in range(40)])
        text = self.write("text.txt", ["a b", "ba ab"] * 20)
        words = dict(dataset=table, val_dataset=text, tokenizer="byte_bpe", vocab_size=260, block_size=16, max_iters=1)
        end = self.train("run", **words)
        self.assertAlmostEqual(self.evaluate("run")["loss"], end["val_loss"], places=5)
        self.assert_one_error(run("train", *self.words("packed", **words, documents="pack")), 2, "--documents pack", "text.txt is one text")

    def test_packed_weights_do_not_read_packed_documents(self):
        table = self.write("texts.jsonl", [json.dumps({"text": "ab " * (1 + i % 5)}) for i in range(40)])
        self.train("run", dataset=table, tokenizer="byte_bpe", vocab_size=260, documents="pack", block_size=32, max_iters=1)
        packed = ("evaluate", "--model", self.folder / "run/final", "--weights", "float32")
        self.assert_one_error(run(*packed), 2, "--weights, --documents pack")
        self.assertEqual(run(*packed, "--dataset", table, "--documents", "stream").code, 0)


class LearningTest(TaskTest):
    def test_seq2seq_learns_to_copy_and_translate_writes_it(self):
        pairs = [f"{a} {b}\t{b}" for a in "abcd" for b in "efgh"] * 5
        table = self.write("pairs.tsv", pairs)
        end = self.train("run", task="seq2seq", dataset=table, block_size=8, max_iters=150, label_smoothing=0.05)
        self.assertEqual(end["val_exact_match"], 1.0)
        result = run("translate", "--model", self.folder / "run/final", "--text", "c g", "--threads", 1)
        self.assertEqual((result.code, result.out), (0, "g\n"), result.err)
        scores = self.evaluate("run", "--dataset", table)
        self.assertEqual(scores["exact_match"], 1.0)
        self.assertEqual(scores["bleu"], 0.0)  # answers of one word have no four in a row

    def test_the_recipe_for_reviews_tells_praise_from_blame(self):
        out = self.folder / "praise"
        run("train", "--recipe", "reviews", "--out_dir", out, "--threads", 1)
        held_out = self.folder / "held.tsv"
        self.succeed("data", "make", "reviews", "--count", 400, "--seed", 9, "--output", held_out)
        scores = json.loads(self.succeed("evaluate", "--model", out / "final", "--dataset", held_out, "--json"))
        self.assertGreater(scores["accuracy"], 0.94)  # 0.975 if all is known but what is chance
        texts = {"I hated it": "negative", "I did not hate it": "positive", "I loved the film": "positive",
                 "it was terrible": "negative", "not bad": "positive", "I did not like it": "negative"}
        lines = self.succeed("classify", "--model", out / "final", *(w for text in texts for w in ("--text", text)))
        self.assertEqual({json.loads(line)["text"]: json.loads(line)["label"] for line in lines.splitlines()}, texts)

    def test_mlm_and_then_a_classification_from_it(self):
        text = self.write("text.txt", [line for line, _ in self.reviews()])
        first = self.train("mlm", task="mlm", dataset=text, vocab_size=80, block_size=16, max_iters=50, whole_word="true")
        self.assertLess(first["val_perplexity"], 40)
        table = self.write("reviews.tsv", ["text\tlabel", *("\t".join(pair) for pair in self.reviews())])
        common = dict(task="classification", dataset=table, block_size=16, init_from=self.folder / "mlm/final", class_weights="balanced")
        end = self.train("reviews", max_iters=150, **common)
        self.assertEqual((end["val_accuracy"], end["val_f1"]), (1.0, 1.0))
        config = json.loads((self.folder / "reviews/final/config.json").read_text())
        self.assertEqual(config["id2label"], {"0": "neg", "1": "pos"})
        result = run("classify", "--model", self.folder / "reviews/final", "--text", "the meal was lovely", "--threads", 1)
        self.assertEqual(json.loads(result.out)["label"], "pos")
        asked = run("classify", "--model", self.folder / "reviews/final", "--text", "the meal was lovely", "--threads", 1, "--json")
        self.assertEqual(asked.out, result.out)
        self.assertEqual(self.evaluate("reviews", "--dataset", table)["accuracy"], 1.0)

        # Adapters: nothing but them and the new head changes, and what is exported has them merged.
        end = self.train("lora", max_iters=40, val_dataset=table, eval_iters=100, lora_rank=8, **common)
        first = json.loads((self.folder / "lora/metrics.jsonl").read_text().splitlines()[0])
        self.assertLess(end["val_loss"], first["val_loss"])
        self.assertAlmostEqual(self.evaluate("lora", "--dataset", table)["loss"], end["val_loss"], places=5)
        before, after = (self.tensors(self.folder / name / "final/model.safetensors") for name in ("mlm", "lora"))
        changed = {name for name, data in after.items() if before.get(name) != data}
        self.assertTrue(changed)
        for name in changed:
            self.assertTrue("encoder.layer" in name and name.endswith(".weight") or name.startswith(("classifier", "bert.pooler")), name)

        # The adapter itself, with the new head, is one of PEFT's: on the model that it began with it computes the same.
        adapter = self.folder / "lora/final/adapter"
        config = json.loads((adapter / "adapter_config.json").read_text())
        self.assertEqual(config["base_model_name_or_path"], str(self.folder / "mlm/final"))
        self.assertEqual((config["task_type"], config["r"], config["lora_alpha"]), ("SEQ_CLS", 8, 16))
        self.assertEqual(config["modules_to_save"], ["bert.pooler.dense", "classifier"])
        self.assertIn("bert.encoder.layer.0.attention.self.query", config["target_modules"])
        text = ("--text", "the meal was lovely", "--threads", 1)
        merged, alone = (json.loads(run("classify", *of, *text).out)["scores"]
                         for of in (("--model", self.folder / "lora/final"), ("--adapter", adapter)))
        for label in ("neg", "pos"):
            self.assertAlmostEqual(merged[label], alone[label], places=5)

        # A new head gets no adapter, whatever the pattern: it is trained itself.
        self.train("all", max_iters=2, **common, lora_rank=2, lora_targets="*")
        merged, alone = (json.loads(run("classify", *of, *text).out)["scores"]
                         for of in (("--model", self.folder / "all/final"), ("--adapter", self.folder / "all/final/adapter")))
        self.assertAlmostEqual(merged["neg"], alone["neg"], places=5)

        # Frozen parts stay as they are.
        self.train("frozen", max_iters=10, freeze="stack.*", **common)
        after = self.tensors(self.folder / "frozen/final/model.safetensors")
        changed = {name for name, data in after.items() if before.get(name) != data}
        self.assertFalse([name for name in changed if "encoder.layer" in name])
        self.assertIn("bert.embeddings.word_embeddings.weight", changed)

        # A base whose file states the labels that a model without names has.
        path = self.folder / "mlm/final/config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "num_labels": 2}))
        self.train("stated", max_iters=2, **common)
        config = json.loads((self.folder / "stated/final/config.json").read_text())
        self.assertEqual(config["id2label"], {"0": "neg", "1": "pos"})
        self.assertNotIn("num_labels", config)

    def tensors(self, path):
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
                for name, entry in header.items() if name != "__metadata__"}

    def test_the_other_tasks_learn_what_their_files_say(self):
        pick = self.random.choice
        sentences = []
        for _ in range(60):
            sentences += [f"{pick(['Anna', 'Ben'])}\tB-PER", "lives\tO", "in\tO", "New\tB-LOC", f"{pick(['York', 'Delhi'])}\tI-LOC", ""]
        table = self.write("names.tsv", sentences)
        end = self.train("names", task="token_classification", dataset=table, vocab_size=60, block_size=16, max_iters=50)
        self.assertEqual((end["val_accuracy"], end["val_f1"]), (1.0, 1.0))

        questions = [json.dumps({"question": "Where?", "context": f"{a} lives in {b} now.", "answer": b})
                     for a in ("Anna", "Ben", "Clara") for b in ("Rome", "Paris", "Oslo", "Kyoto")] * 5
        table = self.write("questions.jsonl", questions)
        end = self.train("questions", task="question_answering", dataset=table, vocab_size=80, block_size=32, max_iters=100)
        self.assertEqual((end["val_exact_match"], end["val_f1"]), (1.0, 1.0))
        result = run("answer", "--model", self.folder / "questions/final", "--question", "Where?", "--context", "Ben lives in Oslo now.",
                     "--threads", 1)
        self.assertIn("oslo", result.out.lower())

        text = self.write("text.txt", ["the old house of the king"] * 80)
        end = self.train("spans", task="span_corruption", dataset=text, block_size=24, max_iters=60, n_embd=48)
        self.assertLess(end["val_perplexity"], 12)


class ResumeTest(TaskTest):
    def test_a_run_with_everything_on_goes_on_bit_for_bit(self):
        table = self.write("pairs.tsv", [f"{a} {b}\t{b} {a}" for a in "abcd" for b in "efgh"])
        words = dict(task="seq2seq", dataset=table, block_size=8, max_iters=60, eval_interval=20, dropout=0.1, gradient_accumulation_steps=3,
                     batch_size=2, ema_decay=0.9, optimizer="lion", learning_rate=1e-3, dtype="bfloat16", activation_checkpointing="true")
        self.train("whole", **words)
        process = None
        for start, wanted in (("scratch", 7), ("resume", 33)):
            process = subprocess.Popen([PROGRAM, "train", *self.words("killed", **words, log_interval=1), "--init_from", start],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            log = self.folder / "killed/metrics.jsonl"
            while process.poll() is None and not (log.exists() and f'"iter":{wanted},' in log.read_text()):
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.train("killed", **words, init_from="resume")
        for name in ("final", "best"):
            whole, killed = (self.folder / run_name / name / "model.safetensors" for run_name in ("whole", "killed"))
            self.assertEqual(whole.read_bytes(), killed.read_bytes(), name)

    def test_adapters_go_on_too(self):
        table = self.write("reviews.tsv", ["\t".join(pair) for pair in self.reviews()])
        self.train("base", task="mlm", dataset=self.write("t.txt", [line for line, _ in self.reviews()]), block_size=16, vocab_size=60,
                   max_iters=5)
        words = dict(task="classification", dataset=table, block_size=16, lora_rank=2)
        self.train("whole", max_iters=40, eval_interval=20, init_from=self.folder / "base/final", **words)
        self.train("half", max_iters=20, lr_decay_iters=40, eval_interval=20, init_from=self.folder / "base/final", **words)
        self.train("half", max_iters=40, lr_decay_iters=40, eval_interval=20, init_from="resume", **words)
        whole, half = (self.folder / name / "final/model.safetensors" for name in ("whole", "half"))
        self.assertEqual(whole.read_bytes(), half.read_bytes())
        for name in ("adapter_model.safetensors", "adapter_config.json"):
            whole, half = (self.folder / run_name / "final/adapter" / name for run_name in ("whole", "half"))
            self.assertEqual(whole.read_bytes(), half.read_bytes())

    def test_a_run_with_a_new_head_begins_again_if_it_has_no_checkpoint(self):
        table = self.write("reviews.tsv", ["\t".join(pair) for pair in self.reviews()])
        self.train("base", task="mlm", dataset=self.write("t.txt", [line for line, _ in self.reviews()]), block_size=16, vocab_size=60,
                   max_iters=1)
        for more in ({}, {"lora_rank": 2}):
            self.train("run", task="classification", dataset=table, block_size=16, max_iters=3, init_from=self.folder / "base/final", **more)
            weights = (self.folder / "run/final/model.safetensors").read_bytes()
            for folder in ("checkpoints", "best", "final"):
                shutil.rmtree(self.folder / "run" / folder)
            done = run("train", "--init_from", "resume", "--out_dir", self.folder / "run")
            self.assertEqual(done.code, 0, done.err)
            self.assertIn("no checkpoint in", done.err)
            self.assertEqual((self.folder / "run/final/model.safetensors").read_bytes(), weights)
            shutil.rmtree(self.folder / "run")

    def test_a_run_that_begins_again_keeps_its_models_until_it_has_others(self):
        self.train("run", task="mlm", dataset=self.write("t.txt", [line for line, _ in self.reviews()]), block_size=16, vocab_size=60,
                   max_iters=2, eval_interval=1)
        folder = self.folder / "run"
        shutil.rmtree(folder / "checkpoints")
        resume = ("train", "--init_from", "resume", "--out_dir", folder)
        self.assert_one_error(run(*resume), 1, "has a final model and no checkpoints to go on from")
        shutil.rmtree(folder / "final")
        before = (folder / "best/model.safetensors").read_bytes()
        # It ends before its first model.
        self.assert_one_error(run(*resume, "--learning_rate", 1e30, "--eval_interval", 9, "--max_iters", 9), 1, "is not finite")
        self.assertEqual((folder / "best/model.safetensors").read_bytes(), before)
        self.assertEqual(len(list((folder / "tensorboard").iterdir())), 1)  # its curves are not drawn over the old ones

    def test_a_tuned_model_goes_on_whatever_its_flags_could_not_say(self):
        bases = self.write("bases.txt", ["ACGT" * 10] * 9)
        self.train("dna", dataset=bases, tokenizer="char", block_size=8, max_iters=1)  # fewer tokens than --vocab_size allows
        self.train("tuned", dataset=bases, init_from=self.folder / "dna/final", block_size=8, max_iters=1)
        self.train("tuned", init_from="resume", max_iters=2)
        self.train("tuned", init_from="resume", max_iters=3, dtype="float16")

    def test_an_adapter_of_a_packed_base_goes_on_with_that_base_alone(self):
        words = dict(dataset=self.write("t.txt", [line for line, _ in self.reviews()]), tokenizer="char", block_size=16, max_iters=1)
        self.train("base", **words)
        self.train("run", **{**words, "init_from": self.folder / "base/final", "lora_rank": 2, "weights": "int8"})
        resume = ("train", "--init_from", "resume", "--out_dir", self.folder / "run", "--max_iters", 2)
        self.assertEqual(run(*resume).code, 0)
        self.train("base", **words, seed=2, overwrite="true")
        self.assert_one_error(run(*resume, "--max_iters", 3), 1, "base/final", "the weights are others")

    def test_a_loss_of_whole_batches_goes_on_with_as_many_ranks(self):
        self.train("base", task="mlm", dataset=self.write("t.txt", [line for line, _ in self.reviews()]), block_size=16, vocab_size=60,
                   max_iters=1)
        words = dict(task="embedding", init_from=self.folder / "base/final", block_size=8, max_iters=1, batch_size=4)
        pairs = self.write("pairs.tsv", ["anchor\tpositive", *(f"film {i}\tmeal {i}" for i in range(20))])
        self.train("run", dataset=pairs, processes=2, **words)
        self.assert_one_error(run("train", "--init_from", "resume", "--out_dir", self.folder / "run", "--max_iters", 2), 1,
                              "the loss compares all rows", "as many as before")
        scored = [self.write(f"{name}.tsv", ["sentence1\tsentence2\tscore", "a\tb\t0.5", f"a\tb\t{score}"])
                  for name, score in (("train", 0.1), ("held-out", 1.5))]
        self.assert_one_error(run("train", *self.words("scored", dataset=scored[0], val_dataset=scored[1], loss="cosine", **words)), 1,
                              "held-out.tsv, line 3")

    def test_a_model_with_several_dropout_rates_goes_on(self):
        lines = self.reviews(40)
        self.train("base", task="mlm", model_type="distilbert", dropout=0.1, dataset=self.write("t.txt", [line for line, _ in lines]),
                   block_size=16, vocab_size=60, max_iters=1)
        path = self.folder / "base/final/config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seq_classif_dropout": 0.2}))  # as the published
        words = dict(task="classification", dataset=self.write("reviews.tsv", ["\t".join(line) for line in lines]), block_size=16,
                     init_from=self.folder / "base/final", max_iters=1)
        self.assert_one_error(run("train", *self.words("run", **words, dropout=0.1)), 1, "--dropout 0.1", "0.2")
        self.train("run", **words)
        self.train("run", init_from="resume", max_iters=2)
        config = json.loads((self.folder / "run/final/config.json").read_text())
        self.assertEqual((config["dropout"], config["seq_classif_dropout"]), (0.1, 0.2))


class TargetTest(TaskTest):
    def test_an_update_without_a_target_is_skipped_by_all_ranks(self):
        table = self.write("short.jsonl", ['{"text": "a b"}'] * 40)
        words = self.words("run", task="mlm", dataset=table, vocab_size=30, block_size=8, batch_size=1, max_iters=10, eval_interval=10,
                           eval_iters=40, log_interval=1)
        result = run("train", *words, "--processes", 2)
        self.assertEqual(result.code, 0, result.err)
        losses = [json.loads(line)["train_loss"] for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertIn(None, losses)
        self.assertGreater(max(loss for loss in losses if loss is not None), 1)

    def test_an_evaluation_without_a_target_is_an_error(self):
        table = self.write("short.jsonl", ['{"text": "a b"}'] * 12)
        result = run("train", *self.words("run", task="mlm", dataset=table, vocab_size=30, block_size=8, max_iters=1, mlm_probability=0.001))
        self.assert_one_error(result, 1, "nothing to predict", "--eval_iters")

    def test_a_token_is_a_word_where_words_are_not_known(self):
        table = self.write("t.jsonl", ['{"text": "the old house of the king"}'] * 40)
        end = self.train("run", task="mlm", dataset=table, tokenizer="char", block_size=32, max_iters=2, whole_word="true")
        self.assertGreater(end["val_loss"], 1)


class RecordTest(TaskTest):
    def test_tensorboard_gets_what_metrics_get(self):
        text = self.write("text.txt", ["the old house of the king"] * 40)
        self.train("run", dataset=text, block_size=16, max_iters=20, eval_interval=10, log_interval=5, layer_norms="true")
        self.train("run", dataset=text, block_size=16, max_iters=30, eval_interval=10, log_interval=5, init_from="resume")
        values, starts = {}, []
        for path in sorted((self.folder / "run/tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns):
            for event in self.events(path.read_bytes()):
                step = event.get(2, [0])[0]
                starts += [step] if 7 in event else []
                for summary in event.get(5, []):
                    for value in self.message(summary)[1]:
                        fields = self.message(value)
                        values[fields[1][0].decode(), step] = struct.unpack("<f", fields[2][0])[0]
        self.assertEqual(starts, [20])
        for line in (self.folder / "run/metrics.jsonl").read_text().splitlines():
            line = json.loads(line)
            self.assertAlmostEqual(values["train/loss", line["iter"]], line["train_loss"], places=5)
            if "val_perplexity" in line:
                self.assertAlmostEqual(values["val/perplexity", line["iter"]] / line["val_perplexity"], 1, places=5)
            if line["iter"] == 30:  # after the last update
                self.assertNotIn("layers", line)
                continue
            norms = line["layers"]
            self.assertEqual(list(norms), ["embeddings.token", "embeddings.position", "stack.blocks.0", "stack.final_norm"])
            self.assertAlmostEqual(math.hypot(*(norms[name]["grad_norm"] for name in norms)) / line["grad_norm"], 1, places=5)
            for name in norms:
                for kind, value in norms[name].items():
                    self.assertAlmostEqual(values[f"{kind}/{name}", line["iter"]] / value, 1, places=5)

    def events(self, data):
        while data:
            size, check = struct.unpack("<QI", data[:12])
            body = data[12:12 + size]
            self.assertEqual(check, self.masked_crc(data[:8]))
            self.assertEqual(struct.unpack("<I", data[12 + size:16 + size])[0], self.masked_crc(body))
            yield self.message(body)
            data = data[16 + size:]

    def masked_crc(self, data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    def message(self, data):
        """A protobuf message as number of a field: its values; varints as integers, others as bytes."""
        fields, at = {}, 0

        def varint():
            nonlocal at
            value, shift = 0, 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        while at < len(data):
            key = varint()
            kind = key & 7
            if kind == 0:
                value = varint()
            else:
                size = {1: 8, 5: 4}.get(kind) or varint()
                value, at = data[at:at + size], at + size
            fields.setdefault(key >> 3, []).append(value)
        return fields

    def test_a_dry_run_says_what_a_run_takes_and_leaves_nothing(self):
        text = self.write("text.txt", ["the old house of the king"] * 40)
        result = run("train", *self.words("run", dataset=text, block_size=16, dry_run="true"))
        self.assertEqual(result.code, 0, result.err)
        for word in ("parameters", "optimizer", "available", "time of an update"):
            self.assertIn(word, result.out)
        self.assertFalse((self.folder / "run").exists())


class RefusalTest(TaskTest):
    def refuse(self, *words, **flags):
        self.assert_one_error(run("train", *self.words("run", **flags)), 1, *words)
        self.assertFalse((self.folder / "run").exists())

    def test_bad_files_are_named_with_their_line_before_anything_is_trained(self):
        reviews = ["\t".join(pair) for pair in self.reviews(12)]
        wide = self.write("wide.tsv", [*reviews, "a\tb\tc"])
        self.refuse("wide.tsv", "line 13", "3", task="classification", dataset=wide)
        labels = self.write("labels.tsv", [*reviews, "what\tmeh"])
        common = dict(task="classification", dataset=labels)
        result = run("train", *self.words("run", **common), "--labels", "pos", "--labels", "neg")
        self.assert_one_error(result, 1, "labels.tsv", "line 13", "meh")
        good = self.write("good.tsv", reviews)
        result = run("train", *self.words("run", task="classification", dataset=good), "--labels", "pos", "--labels", "neg", "--labels", "odd")
        self.assert_one_error(result, 1, "good.tsv", "'odd'", "no example")
        self.refuse("labels.tsv", "line 13", "meh", task="classification", dataset=good, val_dataset=labels)
        result = run("train", *self.words("run", task="classification", dataset=good), "--labels", "pos", "--labels", "neg", "--labels", "pos")
        self.assert_one_error(result, 2, "--labels: 'pos' is there twice")
        self.refuse("--block_size 1: expected at least 3", task="mlm", dataset=self.write("words.txt", ["a b c"] * 9), tokenizer="char", block_size=1)
        empty = self.folder / "empty.tsv"
        empty.touch()
        self.refuse("empty.tsv", "empty", task="seq2seq", dataset=empty)
        self.refuse("t.jsonl", "line 2", task="seq2seq", dataset=self.write("t.jsonl", ['{"source": "a", "target": "b"}', "{"]))
        self.refuse("names.tsv", "line 2", task="token_classification", dataset=self.write("names.tsv", ["a\tO", "b"]))
        self.refuse("q.tsv", "line 1", "answer", task="question_answering", dataset=self.write("q.tsv", ["q\tcontext\tmissing"]))
        self.refuse("byte", "pad_token", task="seq2seq", dataset=self.write("p.tsv", ["a\tb"] * 4), tokenizer="byte")
        for name, line, fault in (("lines.txt", "a b c", "is one text"),
                                  ("texts.jsonl", '{"text": "a b c d e f"}', "no token that ends a document")):
            result = run("train", *self.words("run", task="lm", dataset=self.write(name, [line] * 12)), "--documents", "pack")
            self.assert_one_error(result, 2, "--documents pack", name, fault)
        self.refuse("no masked-lm head", task="mlm", dataset=self.write("t.txt", ["a b c"] * 9), model_type="gpt2", tokenizer="char")

    def test_a_flag_that_the_task_does_not_read_is_refused(self):
        pairs = self.write("pairs.tsv", ["a b\tb a"] * 12)
        for task, words in {"seq2seq": ["--labels", "a"], "lm": ["--class_weights", "balanced"], "question_answering": ["--whole_word"],
                            "chat": ["--mlm_probability", 0.3], "mlm": ["--noise_density", 0.2], "classification": ["--target_size", 9],
                            "token_classification": ["--source_prefix", "x"], "ranking": ["--chat_template", pairs],
                            "span_corruption": ["--documents", "pack"]}.items():
            result = run("train", *self.words("run", task=task, dataset=pairs), *words)
            self.assert_one_error(result, 2, f"{words[0]}: only for the task ", f", not {task}")
        for task, words, said in (("question_answering", ["--label_smoothing", 0.1], "--label_smoothing: not for the task question_answering"),
                                  ("lm", ["--lora_alpha", 32], "--lora_alpha: only with --lora_rank"),
                                  ("lm", ["--lora_targets", "*"], "--lora_targets: only with --lora_rank"),
                                  ("lm", ["--momentum", 0.5], "--momentum: only for the optimizer sgd or muon, not adamw"),
                                  ("lm", ["--optimizer", "sgd", "--beta2", 0.5], "--beta2: only for the optimizer adamw or lion or muon, not sgd"),
                                  ("lm", ["--optimizer", "lion", "--adam_eps", 0.5], "--adam_eps: only for the optimizer adamw or muon, not lion"),
                                  ("lm", ["--adjust_lr_fn", "original"], "--adjust_lr_fn: only for the optimizer muon, not adamw"),
                                  ("lm", ["--lr_schedule", "wsd", "--lr_cycles", 3], "--lr_cycles: only for the lr_schedule linear or cosine, not wsd"),
                                  ("lm", ["--cooldown_iters", 3], "--cooldown_iters: only for the lr_schedule wsd or trapezoid, not cosine"),
                                  ("lm", ["--lr_schedule", "inverse_sqrt", "--lr_decay_iters", 3], "--lr_decay_iters: only for the lr_schedule linear or "),
                                  ("lm", ["--lr_schedule", "constant"], "--min_lr: only for the lr_schedule linear or cosine or inverse_sqrt or ")):
            self.assert_one_error(run("train", *self.words("run", task=task, dataset=pairs), *words), 2, said)
        # A recipe's values are those of its own optimizer and schedule: whoever takes another one need not know them.
        self.assert_one_error(run("train", "--recipe", "shakespeare-char", "--optimizer", "sgd", "--lr_schedule", "constant", "--dataset", "nowhere",
                                  "--out_dir", self.folder / "run"), 1, "nowhere")
        tokens = self.folder / "tokens"
        self.succeed("data", "prepare", self.write("t.txt", ["a b c"] * 40), "--tokenizer", "char", "--out_dir", tokens)
        words = self.words("run", dataset=tokens, block_size=8, max_iters=1)
        for more in (["--val_dataset", pairs], ["--columns", "text=a"], ["--tokenizer", "byte"], ["--tokenizer", tokens]):
            self.assert_one_error(run("train", *words, *more), 2, more[0], "not with token files", str(tokens))
        self.assertFalse((self.folder / "run").exists())
        self.assertEqual(run("train", *words, "--tokenizer", "char").code, 0)  # as a recipe may have it

    def test_a_mixture_draws_from_each_dataset(self):
        """Of two texts with letters of their own, each half is predicted as if it were alone."""
        a, b = self.write("a.txt", ["ab" * 30] * 20), self.write("b.jsonl", [json.dumps({"text": "cd" * 30})] * 20)
        self.train("run", dataset=f"{a}:3,{b}:1", block_size=8, max_iters=4, eval_interval=2, keep_checkpoints=2)
        vocabulary = json.loads((self.folder / "run/final/tokenizer.json").read_text())["model"]["vocab"]
        self.assertEqual(set(vocabulary), set("abcd\n"))
        before = (self.folder / "run/final/model.safetensors").read_bytes()
        shutil.rmtree(self.folder / "run/final")
        shutil.rmtree(self.folder / "run/checkpoints/step-00000004")
        self.train("run", init_from="resume")
        self.assertEqual((self.folder / "run/final/model.safetensors").read_bytes(), before)

        tokens = self.folder / "tokens"
        self.succeed("data", "prepare", self.write("x.txt", ["xy" * 30] * 20), "--tokenizer", "char", "--out_dir", tokens)
        for code, dataset, more, said in (
                (2, f"{a}:1,{b}", [], f"'{b}' has no weight"), (2, f"{a}:0,{b}:1", [], f"the weight of '{a}:0' must be a number above 0"),
                (1, f"{a}:1,nowhere:1", [], "nowhere"), (1, f"{tokens}:1,{b}:1", ["--init_from", self.folder / "run/final"], "another tokenizer, whose id 1"),
                (1, f"{tokens}:1,{b}:1", [], "b.jsonl"), (2, f"{tokens}:1,{b}:1", ["--tokenizer", "char"], "not with token files"),
                (2, f"{b}:1,{b}:1", ["--task", "mlm", "--model_type", "bert"], "which have no mixtures"),
                (1, f"{b}:1,{b}:1", ["--documents", "pack", "--tokenizer", "byte_bpe", "--vocab_size", 300], "a mixture of datasets cannot be packed")):
            self.assert_one_error(run("train", *self.words("other", dataset=dataset, block_size=8, max_iters=1), *more), code, said)
            self.assertFalse((self.folder / "other").exists())

    def test_a_table_with_other_names_is_refused_or_read_by_columns(self):
        lines = ["sentence1\tsentence2\tlabel", *(f"{text}\tindeed\t{label}" for text, label in self.reviews(24))]
        table = self.write("pairs.tsv", lines)
        self.refuse("pairs.tsv, line 1", "--columns text=sentence1,text_pair=sentence2,label=label", task="classification", dataset=table)
        self.refuse("--columns", "no table", task="lm", dataset=self.write("t.txt", ["a b c"] * 20), columns="text=a")
        self.assert_one_error(run("train", *self.words("run", task="classification", dataset=table, columns="text=a,")), 2, "--columns", "'text=a,'")
        objects = [json.dumps({"sentence1": text, "sentence2": "indeed", "label": label, "idx": 1}) for text, label in self.reviews(24)]
        for name, content, columns in (("pairs.tsv", lines, "text=sentence1,text_pair=sentence2,label=label"),
                                       ("pairs.jsonl", objects, "text=sentence1,text_pair=sentence2")):
            out = name.replace(".", "-")
            words = self.words(out, task="classification", dataset=self.write(name, content), columns=columns, max_iters=1)
            result = run("train", *words)
            self.assertEqual(result.code, 0, result.err)
            self.assertEqual(json.loads((self.folder / out / "final/config.json").read_text())["id2label"], {"0": "neg", "1": "pos"})
            self.assertEqual("pairs.jsonl: ignoring idx, which the task classification does not read" in result.err, name == "pairs.jsonl")
            self.evaluate(out)
        self.refuse("empty.jsonl, line 1", task="classification", dataset=self.write("empty.jsonl", ["", '{"text": "a", "label": "b"}']))
        self.refuse("typo.jsonl, line 1", "'lable'", "did you mean 'label'?", task="classification",
                    dataset=self.write("typo.jsonl", ['{"text": "a", "lable": "b"}']))

    def test_labels_and_widths_of_tagged_words_are_checked_too(self):
        words = [line for i in range(12) for line in (f"w{i}\tA", "")]
        tags = self.write("tags.tsv", [*words, "x\tQ"])
        result = run("train", *self.words("run", task="token_classification", dataset=tags), "--labels", "A", "--labels", "B")
        self.assert_one_error(result, 1, "tags.tsv", "line 25", "'Q'")
        lines = ['{"tokens": ["a"], "labels": ["A"]}'] * 12
        self.refuse("tags.jsonl", "line 13", "2 tokens", "1 label", task="token_classification",
                    dataset=self.write("tags.jsonl", [*lines, '{"tokens": ["a", "b"], "labels": ["A"]}']))
        self.refuse("one.tsv", "two labels", task="classification", dataset=self.write("one.tsv", ["good\tpos"] * 12))
        self.refuse("head.tsv", "no example", task="classification", dataset=self.write("head.tsv", ["text\tlabel"]))
        self.refuse("q.jsonl", "line 1", "character 99", task="question_answering",
                    dataset=self.write("q.jsonl", ['{"question": "q", "context": "c d", "answer": "d", "answer_start": 99}']))

    def test_a_text_that_is_empty_or_holds_what_the_model_does_not_know_is_named_with_its_line(self):
        empty = self.folder / "empty.txt"
        empty.touch()
        for task in ("lm", "mlm", "span_corruption"):
            self.refuse("empty.txt", "empty", task=task, dataset=empty)
        known, unknown = self.write("known.txt", ["abc def"] * 40), self.write("unknown.txt", [*["abc def"] * 40, "abz"])
        self.train("base", dataset=known, block_size=8, max_iters=1)
        start = dict(init_from=self.folder / "base/final", block_size=8)
        self.refuse("unknown.txt", "line 41", "'z'", dataset=unknown, **start)  # in the validation split
        self.refuse("unknown.txt", "line 41", "'z'", dataset=known, val_dataset=unknown, **start)

    def test_ids_outside_the_vocabulary_name_the_file(self):
        data = self.folder / "data"
        data.mkdir()
        for split in ("train", "val"):
            (data / f"{split}.bin").write_bytes(struct.pack("<40H", *range(40)))
        (data / "meta.json").write_text(json.dumps({"format_version": 1, "dtype": "uint16", "vocab_size": 30, "tokenizer": "char",
                                                    "train_tokens": 40, "val_tokens": 40, "source_sha256": "0" * 64}))
        self.refuse("train.bin", "30", task="lm", dataset=data, block_size=8)


if __name__ == "__main__":
    unittest.main()
