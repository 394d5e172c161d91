"""The task ranking beside plain PyTorch on transformers' BertForSequenceClassification: losses and weights after updates,
the cross-encoder that is written, figures, and what is refused."""

import json
import math
import pathlib
import tempfile
import unittest

import safetensors.torch
import torch
import transformers
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from sgd_training import SgdTraining
from text_models import TEXTS, lines, shaken, sizes, tzoo, wordpiece

QUERIES = ["let there be light", "the earth", "let there be light", "the earth", "word"]
LABELS = [1, 0, 0.25, 1, 0]
PAIRS = [{"query": q, "document": d, "label": label} for q, d, label in zip(QUERIES, TEXTS, LABELS)]
LISTS = [{"query": QUERIES[i], "positive": TEXTS[i], "negatives": [TEXTS[(i + j) % 5] for j in range(1, 3 + i % 2)]} for i in (0, 1, 4)]
STEPS, RATE = 20, 0.15


class RankingTrainingTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        torch.manual_seed(4)
        cls.tokenizer = wordpiece()
        cls.model = shaken(transformers.BertForSequenceClassification(transformers.BertConfig(
            **sizes(cls.tokenizer), num_labels=1, max_position_embeddings=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0)), 0.1)
        cls.model.save_pretrained(cls.root / "ranker")
        cls.tokenizer.save_pretrained(cls.root / "ranker")
        cls.model.bert.save_pretrained(cls.root / "bert")
        cls.tokenizer.save_pretrained(cls.root / "bert")

    def train(self, records, *words, model="ranker", steps=STEPS):
        dataset = self.root / "rows.jsonl"
        dataset.write_text(records if isinstance(records, str) else "".join(json.dumps(record) + "\n" for record in records))
        return self.train_rows("ranking", model, dataset, *words, steps=steps, rate=RATE, batch=len(records) if isinstance(records, list) else 5)

    def logits(self, model, pairs):
        return torch.stack([model(**self.tokenizer(*pair, truncation=True, max_length=64, return_tensors="pt")).logits[0, 0] for pair in pairs])

    def check(self, run, loss):
        return self.follow(run, transformers.BertForSequenceClassification.from_pretrained(self.root / "ranker"), loss, STEPS, RATE)

    def test_losses_of_pairs(self):
        labels = torch.tensor(LABELS).double()
        for words, loss, activation in [((), binary_cross_entropy_with_logits, "activation.Sigmoid"), (("--loss", "mse"), mse_loss, "linear.Identity")]:
            run = self.trained(PAIRS, *words)
            model = self.check(run, lambda model: loss(self.logits(model, list(zip(QUERIES, TEXTS))), labels))
            config = json.loads((run / "final/config.json").read_text())
            self.assertEqual(config["sentence_transformers"]["activation_fn"], "torch.nn.modules." + activation)
            self.assertEqual((config["architectures"], len(config["id2label"])), (["BertForSequenceClassification"], 1))
            # rank applies it; transformers reads the rest.
            read = transformers.BertForSequenceClassification.from_pretrained(run / "final")
            with torch.no_grad():
                score = self.logits(read, [("earth", "the earth")])[0]
            found = lines("rank", "--model", str(run / "final"), "--query", "earth", "--document", "the earth")
            self.assertAlmostEqual(found[0]["score"], (score if words else score.sigmoid()).item(), places=5)

    def test_lists(self):
        def loss(model):
            rows = [self.logits(model, [(row["query"], row["positive"]), *((row["query"], text) for text in row["negatives"])]) for row in LISTS]
            return torch.stack([cross_entropy(row[None], torch.tensor([0])) for row in rows]).mean()
        self.check(self.trained(LISTS, "--loss", "listwise_softmax"), loss)
        # Micro batches count by their queries.
        run = self.trained(LISTS, "--loss", "listwise_softmax", "--batch_size", "1", "--gradient_accumulation_steps", "3")
        self.check(run, loss)

    def test_labels_of_lists(self):
        graded = [dict(query=QUERIES[0], document=text, label=label) for text, label in zip(TEXTS, (2, 0, 3, 0, 1))]
        graded += [dict(query=QUERIES[1], document=text, label=label) for text, label in zip(TEXTS[1:4], (0.5, 0.5, 0))]
        graded += [dict(query="word", document=text, label=1) for text in TEXTS[:2]]  # nothing to order

        def loss(model):  # LambdaLoss, NDCG-Loss2++, of Wang et al. (2018), equation by equation
            losses = []
            for query in QUERIES[:2]:
                rows = [row for row in graded if row["query"] == query]
                scores = self.logits(model, [(query, row["document"]) for row in rows])
                labels = [row["label"] for row in rows]
                ranks = {i: 1 + rank for rank, i in enumerate(scores.argsort(descending=True).tolist())}
                best = sum((2 ** label - 1) / math.log2(1 + rank) for rank, label in enumerate(sorted(labels, reverse=True), 1))
                for i, a in enumerate(labels):
                    for j, b in enumerate(labels):
                        if a <= b:
                            continue
                        gain, apart = abs(2 ** a - 2 ** b) / best, abs(ranks[i] - ranks[j])
                        near = 1 / math.log2(1 + apart) - 1 / math.log2(2 + apart)
                        own = abs(1 / math.log2(1 + ranks[i]) - 1 / math.log2(1 + ranks[j]))
                        losses.append(-(10 * near + own) * gain * torch.nn.functional.logsigmoid(scores[i] - scores[j]) / math.log(2))
            return torch.stack(losses).mean()
        for words in (("--batch_size", "2"), ("--batch_size", "1", "--gradient_accumulation_steps", "2")):
            self.check(self.trained(graded, "--loss", "lambda", *words), loss)

    def test_lists_as_pairs(self):
        pairs = [(row["query"], text) for row in LISTS for text in (row["positive"], *row["negatives"])]
        labels = torch.tensor([1. if i == 0 else 0. for row in LISTS for i in range(1 + len(row["negatives"]))]).double()
        self.check(self.trained(LISTS), lambda model: binary_cross_entropy_with_logits(self.logits(model, pairs), labels))

    def test_figures(self):
        with torch.no_grad():
            logits = self.logits(self.model, list(zip(QUERIES, TEXTS))).tolist()
        first = self.metrics(self.trained(PAIRS, steps=1))[0]
        # Two queries have two documents: gains 1 and 0.25, and 0 and 1.
        ndcgs = []
        for a, b in [(0, 2), (3, 1)]:
            best, other = LABELS[a], LABELS[b]
            ideal = best + other / math.log2(3)
            ndcgs.append(1 if logits[a] > logits[b] else (other + best / math.log2(3)) / ideal)
        self.assertAlmostEqual(first["val_ndcg_at_10"], sum(ndcgs) / 2, places=6)
        self.assertAlmostEqual(first["val_mrr_at_10"], (1 + (1 if logits[3] > logits[1] else 0.5)) / 2, places=6)
        figures = self.evaluated(self.root / "ranker", "--task", "ranking", "--dataset", str(self.root / "rows.jsonl"))
        self.assertEqual(figures, {name: first["val_" + name] for name in ("accuracy", "mrr_at_10", "ndcg_at_10", "recall_at_10")})
        # Other labels, such as those of --loss mse, have the same figures.
        larger = self.root / "larger.jsonl"
        larger.write_text("".join(json.dumps(row | {"label": 4 * row["label"]}) + "\n" for row in PAIRS))
        self.assertEqual(self.evaluated(self.root / "ranker", "--task", "ranking", "--dataset", str(larger)), figures)
        # Without a query of several documents: the order of all.
        first = self.metrics(self.trained([row | {"query": f"a{i}"} for i, row in enumerate(PAIRS[1:4])], steps=1))[0]
        self.assertIn("val_spearman", first)

    def test_a_new_head_and_resuming(self):
        done, run = self.train(PAIRS, model="bert", steps=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("newly initialised: classifier", done.stderr)
        self.assertEqual(safetensors.torch.load_file(run / "final/model.safetensors")["classifier.weight"].shape, (1, 16))
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters", str(STEPS))
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = self.trained(PAIRS, model="bert")
        self.assertEqual((run / "final/model.safetensors").read_bytes(), (whole / "final/model.safetensors").read_bytes())

    def test_what_is_refused(self):
        for records, words, said in [
                (PAIRS, ("--loss", "listwise_softmax"), "line 1: the loss listwise_softmax needs a query with its positive and at least one"),
                ([PAIRS[0] | {"label": 4}], (), "needs labels from 0 to 1; found 4"),
                ([PAIRS[0] | {"label": "yes"}], (), "line 1: 'label' must be a number, found 'yes'"),
                ([{"query": "a", "positive": "b"}], ("--loss", "listwise_softmax"), "needs a query with its positive and at least one"),
                ([dict(row, label=1) for row in PAIRS], ("--loss", "lambda"), "the loss lambda needs a query with documents of different labels"),
                (PAIRS, ("--loss", "cosent"), "--loss cosent: of the task embedding; ranking has binary_cross_entropy"),
                (PAIRS, ("--mini_batch_size", "2"), "--mini_batch_size: only for the task embedding, not ranking"),
                (PAIRS, ("--label_smoothing", "0.1"), "--label_smoothing: not for the task ranking")]:
            with self.subTest(said):
                done, run = self.train(records, *words)
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())


if __name__ == "__main__":
    unittest.main()
