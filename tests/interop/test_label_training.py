"""The task classification with several labels for a text and with numbers, beside plain PyTorch on transformers'
BertForSequenceClassification: losses and weights after updates, figures, what is written, and what is refused."""

import json
import math
import pathlib
import tempfile
import unittest

import torch
import transformers

from sgd_training import SgdTraining
from text_models import TEXTS, lines, shaken, sizes, tzoo, wordpiece

NAMES = ["calm", "glad", "sad"]
LABELS = [["glad"], ["sad", "calm"], [], ["glad", "sad", "calm"], ["calm"]]
HOT = torch.tensor([[name in labels for name in NAMES] for labels in LABELS]).double()
SCORES = torch.tensor([4.5, 0, -1.25, 3, 2.5]).double()
STEPS, RATE = 5, 0.15


class LabelTrainingTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        torch.manual_seed(4)
        cls.tokenizer = wordpiece()
        shape = dict(sizes(cls.tokenizer), max_position_embeddings=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        for name, more in [("several", dict(id2label=dict(enumerate(NAMES)), problem_type="multi_label_classification")), ("number", dict(num_labels=1)),
                           ("classes", dict(id2label=dict(enumerate(NAMES))))]:
            model = shaken(transformers.BertForSequenceClassification(transformers.BertConfig(**shape, **more)), 0.1)
            model.save_pretrained(cls.root / name)
            cls.tokenizer.save_pretrained(cls.root / name)
        model.bert.save_pretrained(cls.root / "bert")
        cls.tokenizer.save_pretrained(cls.root / "bert")

    def table(self, labels, name="rows.jsonl"):
        if name.endswith(".jsonl"):
            rows = [json.dumps({"text": text, "label": label}) for text, label in zip(TEXTS, labels)]
        else:
            rows = ["text\tlabel", *(f"{text}\t{label}" for text, label in zip(TEXTS, labels))]
        (self.root / name).write_text("\n".join(rows) + "\n")
        return self.root / name

    def train(self, labels, *words, model, steps=STEPS, name="rows.jsonl"):
        return self.train_rows("classification", model, self.table(labels, name), *words, steps=steps, rate=RATE, batch=5)

    def read(self, folder):
        return transformers.BertForSequenceClassification.from_pretrained(folder)

    def logits(self, model):
        return torch.cat([model(**self.tokenizer(text, truncation=True, max_length=64, return_tensors="pt")).logits for text in TEXTS])

    def check(self, run, model, problem, labels):
        def loss(model):
            logits = self.logits(model)
            if problem == "regression":
                return torch.nn.functional.mse_loss(logits[:, 0], labels)
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        self.follow(run, self.read(self.root / model), loss, STEPS, RATE)
        self.assertEqual(json.loads((run / "final/config.json").read_text())["problem_type"], problem)
        # transformers chooses the same loss by what is written.
        final = self.read(run / "final").double()
        with torch.no_grad():
            rows = self.tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
            theirs, logits = final(**rows, labels=labels).loss.item(), self.logits(final)
        figures = self.evaluated(run / "final")
        self.assertAlmostEqual(figures["loss"] / theirs, 1, delta=1e-5)
        return figures, logits

    def test_several_labels(self):
        run = self.trained(LABELS, model="several")
        figures, logits = self.check(run, "several", "multi_label_classification", HOT)
        found, wanted = logits.gt(0).double(), HOT
        right, both = (found * wanted).sum(0), found.sum(0) + wanted.sum(0)
        self.assertAlmostEqual(figures["accuracy"], found.eq(wanted).all(1).double().mean().item(), places=6)
        self.assertAlmostEqual(figures["f1"], (2 * right / both.clamp(min=1)).mean().item(), places=6)
        self.assertAlmostEqual(figures["f1_micro"], (2 * right.sum() / both.sum()).item(), places=6)
        self.assertTrue(0 < figures["f1_micro"] < 1, figures)  # else they would tell nothing
        said = lines("classify", "--model", str(run / "final"), "--text", TEXTS[0])[0]
        for label, logit in zip(NAMES, logits[0]):
            self.assertAlmostEqual(said["scores"][label], logit.sigmoid().item(), places=5)
        # A table has commas between them; micro batches count by their rows.
        table = self.trained([", ".join(labels) for labels in LABELS], "--batch_size", "1", "--gradient_accumulation_steps", "5", model="several", name="rows.tsv")
        self.check(table, "several", "multi_label_classification", HOT)

    def test_numbers(self):
        run = self.trained(SCORES.tolist(), model="number")
        self.check(run, "number", "regression", SCORES)
        # Of the start, whose answers differ more than the noise of float32.
        figures = self.evaluated(self.root / "number", "--dataset", str(self.table(SCORES.tolist())))
        with torch.no_grad():
            found = self.logits(self.read(self.root / "number").double())[:, 0]
        self.assertAlmostEqual(figures["pearson"], torch.corrcoef(torch.stack([found, SCORES]))[0, 1].item(), places=5)
        self.assertAlmostEqual(figures["mean_absolute_error"], (found - SCORES).abs().mean().item(), places=5)

    def test_a_new_head(self):
        for problem, labels, model in [("multi_label_classification", LABELS, "bert"), ("regression", SCORES.tolist(), "bert"), ("multi_label_classification", LABELS, "classes"),
                                       ("single_label_classification", NAMES + NAMES[:2], "several")]:
            # A list tells by itself that there may be several.
            words = () if (model, labels) == ("bert", LABELS) else ("--problem_type", problem)
            run = self.trained(labels, *words, model=model, steps=2)
            config = json.loads((run / "final/config.json").read_text())
            self.assertEqual((config["problem_type"], len(config["id2label"])), (problem, 1 if problem == "regression" else 3))
            resumed = tzoo("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters", "3")
            self.assertEqual(resumed.returncode, 0, resumed.stderr)
            self.assertTrue(math.isfinite(self.metrics(run)[-1]["val_loss"]))

    def test_what_is_refused(self):
        several, number = ("--problem_type", "multi_label_classification"), ("--problem_type", "regression")
        for labels, words, said in [
                (["glad", ["sad"], "calm", "glad", "sad"], (), "line 2: 'label' must be a text, found array"),
                (LABELS, ("--problem_type", "single_label_classification"), "line 1: 'label' must be a text, found array"),
                ([["glad", "glad"], *LABELS[1:]], several, "line 1: the label 'glad' is there twice; expected the labels of the text"),
                (["good"] * 5, number, "line 1: the label of a regression must be a number, found 'good'"),
                (["nan"] * 5, number, "must be a number, found 'nan'"),
                (LABELS, (*several, "--class_weights", "balanced"), "--class_weights, --label_smoothing: only of single_label_classification"),
                ([1.5] * 5, (*number, "--label_smoothing", "0.1"), "only of single_label_classification"),
                ([1.5] * 5, (*number, "--labels", "a"), "--labels: a regression has none")]:
            with self.subTest(said):
                done, run = self.train(labels, *words, model="bert")
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())


if __name__ == "__main__":
    unittest.main()
