"""tzoo train --task embedding --teacher beside plain PyTorch in double precision, on transformers' BERT: the vectors of an
embedding model (mean square) and the margins of a cross-encoder (MarginMSE), and what is refused."""

import json
import pathlib
import shutil
import tempfile
import unittest

import safetensors.torch
import torch
import transformers
from torch.nn.functional import mse_loss

from sgd_training import SgdTraining
from text_models import TEXTS, shaken, sizes, tzoo, wordpiece

POSITIVES = ["the heaven and the earth", "let there be light", "coffee in paris", "a word of god", "void and without form"]
PAIRS = [{"anchor": a, "positive": p} for a, p in zip(TEXTS, POSITIVES)]
LISTS = [pair | {"negatives": [POSITIVES[(i + j) % 5] for j in range(1, 2 + i % 3)]} for i, pair in enumerate(PAIRS)]
SCORED = [{"sentence1": a, "sentence2": p, "score": i / 5} for i, (a, p) in enumerate(zip(TEXTS, POSITIVES))]
STEPS = 20


class EmbeddingDistillationTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        torch.manual_seed(4)
        cls.tokenizer = wordpiece()
        plain = sizes(cls.tokenizer) | {"max_position_embeddings": 64}
        still = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
        # A teacher in training would drop half of its states.
        for name, kind, config in [("student", transformers.BertModel, plain | still),
                                   ("teacher", transformers.BertModel, plain | {"num_hidden_layers": 3, "hidden_dropout_prob": 0.5}),
                                   ("wide", transformers.BertModel, plain | {"hidden_size": 24}),
                                   ("ranker", transformers.BertForSequenceClassification, plain | {"num_labels": 1, "hidden_dropout_prob": 0.5}),
                                   ("classes", transformers.BertForSequenceClassification,
                                    plain | {"num_labels": 1, "problem_type": "multi_label_classification"})]:
            shaken(kind(transformers.BertConfig(**config)), 0.3 if name == "ranker" else 0.1).save_pretrained(cls.root / name)
            cls.tokenizer.save_pretrained(cls.root / name)

    def train(self, records, *words, teacher, steps=STEPS, rate=0.1, model="student"):
        dataset = self.root / "rows.jsonl"
        dataset.write_text("".join(json.dumps(record) + "\n" for record in records))
        return self.train_rows("embedding", model, dataset, "--teacher", str(self.root / teacher), *words, steps=steps, rate=rate, batch=5)

    def load(self, name):
        kind = transformers.BertForSequenceClassification if name == "ranker" else transformers.BertModel
        return kind.from_pretrained(self.root / name).double().eval()

    def encoded(self, *texts):
        return self.tokenizer(*texts, truncation=True, max_length=64, return_tensors="pt")

    def vector(self, model, text):
        return model(**self.encoded(text)).last_hidden_state[0].mean(0)

    def vectors_loss(self, records, prompt=""):
        texts = [text for record in records for value in record.values() if not isinstance(value, float)
                 for text in ([value] if isinstance(value, str) else value)]

        with torch.no_grad():
            wanted = torch.stack([self.vector(self.load("teacher"), prompt + text) for text in texts])
        return lambda student: mse_loss(torch.stack([self.vector(student, text) for text in texts]), wanted)

    def margins_loss(self, student, prompt=""):
        found, wanted, teacher = [], [], self.load("ranker")
        for record in LISTS:
            query, documents = record["anchor"], [record["positive"], *record["negatives"]]
            with torch.no_grad():
                known = [teacher(**self.encoded(prompt + query, document)).logits[0, 0] for document in documents]
            anchor = self.vector(student, query)
            scores = [anchor @ self.vector(student, document) for document in documents]
            found += [scores[0] - score for score in scores[1:]]
            wanted += [known[0] - score for score in known[1:]]
        return mse_loss(torch.stack(found), torch.stack(wanted))

    def check(self, loss, records, *words, teacher, rate, steps=STEPS):
        """Losses and weights after updates, and with rate 1 every gradient."""
        run = self.trained(records, *words, teacher=teacher, rate=rate, steps=steps)
        student, start = self.load("student"), self.load("student")
        optimizer = torch.optim.SGD(student.parameters(), lr=rate)
        rows = self.metrics(run)
        for row in rows[:steps]:
            value = loss(student)
            self.assertAlmostEqual(row["train_loss"] / value.item(), 1, delta=1e-5)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        self.assertAlmostEqual(rows[-1]["val_loss"] / loss(student).item(), 1, delta=1e-5)
        ours = safetensors.torch.load_file(run / "final/model.safetensors")
        moved = 0
        for key, theirs in student.named_parameters():
            self.assertLessEqual((ours[key] - theirs).abs().max().item(), 1e-5 * max(theirs.abs().max().item(), 0.1), key)
            moved = max(moved, (theirs - start.get_parameter(key)).abs().max().item())
        self.assertGreater(moved, 0.002)  # else the test would tell nothing
        ours = safetensors.torch.load_file(self.trained(records, *words, teacher=teacher, steps=1, rate=1) / "final/model.safetensors")
        loss(start).backward()
        gradients = {key: parameter.grad for key, parameter in start.named_parameters() if parameter.grad is not None}
        largest = max(gradient.abs().max().item() for gradient in gradients.values())
        for key, gradient in gradients.items():
            found = start.get_parameter(key).detach() - ours[key].double()
            self.assertLessEqual((found - gradient).abs().max().item(), 1e-5 * largest, key)
        return rows

    def test_vectors(self):
        for records, steps in (PAIRS, STEPS), (LISTS, 3), (SCORED, 3):
            with self.subTest(list(records[0])):
                rows = self.check(self.vectors_loss(records), records, teacher="teacher", rate=0.1, steps=steps)
                self.assertIn("val_spearman" if records is SCORED else "val_mrr_at_10", rows[-1])

    def sentence_teacher(self, name, **modules):
        shutil.copytree(self.root / "teacher", self.root / name)
        (self.root / name / "modules.json").write_text(json.dumps([
            {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind} for i, (kind, path) in enumerate(modules.items())]))
        (self.root / name / "1_Pooling").mkdir()
        (self.root / name / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}))

    def test_pieces_and_the_default_prompt_of_the_teacher(self):
        self.sentence_teacher("prompted", Transformer="", Pooling="1_Pooling")
        (self.root / "prompted/config_sentence_transformers.json").write_text(json.dumps(
            {"prompts": {"query": "god said: "}, "default_prompt_name": "query"}))
        self.check(self.vectors_loss(PAIRS, "god said: "), PAIRS, "--mini_batch_size", "2", teacher="prompted", rate=0.1, steps=3)

    def test_margins(self):
        self.check(self.margins_loss, LISTS, teacher="ranker", rate=0.002)

    def test_the_default_prompt_of_a_cross_encoder(self):
        shutil.copytree(self.root / "ranker", self.root / "asked")
        (self.root / "asked/config_sentence_transformers.json").write_text(json.dumps(
            {"prompts": {"query": "god said: "}, "default_prompt_name": "query"}))
        row = self.metrics(self.trained(LISTS, teacher="asked", steps=1, rate=0.002))[0]
        self.assertAlmostEqual(row["train_loss"] / self.margins_loss(self.load("student"), "god said: ").item(), 1, delta=1e-5)

    def test_micro_batches_have_the_losses_of_the_batch(self):
        micro = ("--batch_size", "1", "--gradient_accumulation_steps", "5", "--eval_iters", "5")
        for teacher in "ranker", "teacher":
            whole, parts = (self.metrics(self.trained(LISTS, *words, teacher=teacher, steps=2, rate=0.002)) for words in ((), micro))
            for one, other in zip(whole, parts, strict=True):
                for key in {"train_loss", "val_loss"} & one.keys():
                    self.assertAlmostEqual(other[key] / one[key], 1, delta=1e-5, msg=f"{teacher} {key}")

    def test_resuming(self):
        whole, half = (self.trained(LISTS, teacher="ranker", steps=steps, rate=0.002) for steps in (4, 2))
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(half), "--max_iters", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((half / "final/model.safetensors").read_bytes(), (whole / "final/model.safetensors").read_bytes())

    def test_a_teacher_of_other_modules_is_noticed(self):
        self.sentence_teacher("dense", Transformer="", Pooling="1_Pooling", Dense="2_Dense")
        folder = self.root / "dense/2_Dense"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"in_features": 16, "out_features": 16, "bias": False,
                                                        "activation_function": "torch.nn.modules.activation.Tanh"}))
        safetensors.torch.save_file({"linear.weight": torch.eye(16)}, folder / "model.safetensors")
        run = self.trained(PAIRS, teacher="dense", steps=1)
        resume = ("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters")
        self.assertEqual(tzoo(*resume, "2").returncode, 0)
        safetensors.torch.save_file({"linear.weight": -torch.eye(16)}, folder / "model.safetensors")
        done = tzoo(*resume, "3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dense has changed since the run's checkpoint", done.stderr)

    def test_what_is_refused(self):
        for records, words, teacher, said in [
                (PAIRS, (), "wide", "--teacher: its vectors have another size than the student's 16"),
                (PAIRS, (), "ranker", "line 1: the teacher is a cross-encoder, whose margins need a negative"),
                (LISTS, (), "classes", "is no regression, as the logits of a cross-encoder are"),
                (PAIRS, ("--loss", "multiple_negatives_ranking"), "teacher", "--teacher: not with --disagreement, --loss, --scale"),
                (PAIRS, ("--scale", "3"), "teacher", "--teacher: not with"), (PAIRS, ("--symmetric",), "teacher", "--teacher: not with"),
                (PAIRS, ("--matryoshka_dims", "8"), "teacher", "--teacher: not with"),
                (PAIRS, ("--distillation_weight", "0.3"), "teacher", "only with --teacher for lm and chat")]:
            with self.subTest(said=said, words=words):
                done, run = self.train(records, *words, teacher=teacher)
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())


if __name__ == "__main__":
    unittest.main()
