"""The task embedding beside plain PyTorch on transformers' BertModel: losses and weights after updates, the directory that
is written, figures, and what is refused."""

import json
import math
import pathlib
import tempfile
import unittest

import safetensors.torch
import torch
import transformers
from torch.nn.functional import cross_entropy, normalize

from sgd_training import SgdTraining
from text_models import TEXTS, byte_level, lines, shaken, sizes, tzoo, wordpiece

POSITIVES = ["the heaven and the earth", "let there be light", "coffee in paris", "a word of god", "void and without form"]
NEGATIVES = ["god said light", "the beginning", "earth", "in the heaven there", "café"]
SCORES = [0.9, -0.2, 0.4, 0.4, 0.1]
PAIRS = [{"anchor": a, "positive": p} for a, p in zip(TEXTS, POSITIVES)]
TRIPLETS = [pair | {"negative": n} for pair, n in zip(PAIRS, NEGATIVES)]
SCORED = [{"sentence1": a, "sentence2": p, "score": s} for a, p, s in zip(TEXTS, POSITIVES, SCORES)]
LABELLED = [{"text": text, "label": label} for text, label in zip(TEXTS, ("a", "b", "a", 3, "b"))]
STEPS, RATE = 20, 0.005  # a larger rate is chaotic: PyTorch in float32 is then no nearer to float64


def cosines(a, b):
    return normalize(a, dim=-1) @ normalize(b, dim=-1).T


def ranking(scale=20, symmetric=False):
    def loss(a, b, _):
        scores, own = scale * cosines(a, b), torch.arange(len(a))
        forward = cross_entropy(scores, own)
        return (forward + cross_entropy(scores[:, :len(a)].T, own)) / 2 if symmetric else forward
    return loss


def cosent(scale=20):
    def loss(a, b, scores):
        c = scale * (normalize(a, dim=-1) * normalize(b, dim=-1)).sum(-1)
        terms = [c[i] - c[j] for i in range(len(c)) for j in range(len(c)) if scores[i] < scores[j]]
        return torch.stack(terms).exp().sum().log1p()
    return loss


def cosine(a, b, scores):
    return ((normalize(a, dim=-1) * normalize(b, dim=-1)).sum(-1) - torch.tensor(scores)).square().mean()


def triplets(margin=5):
    def loss(x, _, labels):
        d = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        n = range(len(labels))
        terms = [d[a, p] - d[a, n_] + margin for a in n for p in n for n_ in n if a != p and labels[a] == labels[p] and labels[a] != labels[n_]]
        wrong = [term for term in terms if term > 0]
        return torch.stack(wrong).mean()
    return loss


def matryoshka(loss, sizes):
    return lambda a, b, scores: sum(loss(a[:, :size], b[:, :size], scores) for size in sizes)


class EmbeddingTrainingTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        torch.manual_seed(4)
        cls.tokenizer = wordpiece()
        cls.model = shaken(transformers.BertModel(transformers.BertConfig(
            **sizes(cls.tokenizer), max_position_embeddings=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0)), 0.1)
        cls.model.save_pretrained(cls.root / "bert")
        cls.tokenizer.save_pretrained(cls.root / "bert")

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def rows(self, records, name="rows.jsonl"):
        return self.write(name, "".join(json.dumps(record) + "\n" for record in records))

    def train(self, records, *words, model="bert", steps=STEPS, task="embedding", rate=RATE):
        dataset = records if isinstance(records, str) else self.rows(records)
        return self.train_rows(task, model, dataset, *words, steps=steps, rate=rate, batch=5)

    def vectors(self, model, texts, *, prompt="", skip=False, then=lambda x: x):
        found = []
        for text in texts:
            batch = self.tokenizer(prompt + text, truncation=True, max_length=64, return_tensors="pt")
            skipped = len(self.tokenizer(prompt)["input_ids"]) - 1 if skip else 0
            found.append(model(**batch).last_hidden_state[0, skipped:].mean(0))
        return then(torch.stack(found))

    def reference(self, records, loss, *, query={}, document={}, then=lambda x: x, more=(), rate=RATE):
        """The losses of the updates, and the model after them, in double precision."""
        model = transformers.BertModel.from_pretrained(self.root / "bert").double().train()
        names = ("sentence1", "sentence2") if "score" in records[0] else ("text", "text") if "label" in records[0] else ("anchor", "positive")
        negatives = [record["negative"] for record in records if "negative" in record]
        optimizer = torch.optim.SGD([*model.parameters(), *more], lr=rate)
        losses = []
        for _ in range(STEPS):
            a = self.vectors(model, [record[names[0]] for record in records], then=then, **query)
            b = self.vectors(model, [record[names[1]] for record in records] + negatives, then=then, **document)
            value = loss(a, b, [record.get("score", record.get("label")) for record in records])
            losses.append(value.item())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        return losses, model

    def check(self, run, losses, model):
        for ours, theirs in zip(self.metrics(run), losses):
            self.assertAlmostEqual(ours["train_loss"] / theirs, 1, delta=1e-5)
        ours = safetensors.torch.load_file(run / "final/model.safetensors")
        moved = 0
        for name, theirs in model.state_dict().items():
            largest = theirs.abs().max().item()
            self.assertLessEqual((ours[name] - theirs).abs().max().item(), 1e-5 * max(largest, 0.1), name)
            moved = max(moved, (theirs - self.model.state_dict()[name]).abs().max().item())
        self.assertGreater(moved, 0.005)  # else the test would tell nothing

    def test_losses(self):
        for records, flags, loss, *rate in [
                (PAIRS, (), ranking()), (TRIPLETS, ("--scale", "7"), ranking(7)), (TRIPLETS, ("--symmetric",), ranking(symmetric=True)),
                (SCORED, (), cosent()), (SCORED, ("--loss", "cosent", "--scale", "3"), cosent(3)), (SCORED, ("--loss", "cosine"), cosine),
                (TRIPLETS, ("--matryoshka_dims", "16,8,3"), matryoshka(ranking(), (16, 8, 3)), 0.0005),
                (SCORED, ("--matryoshka_dims", "4"), matryoshka(cosent(), (4,)), 0.001),
                (LABELLED, (), triplets()), (LABELLED, ("--margin", "2", "--matryoshka_dims", "16,5"), matryoshka(triplets(2), (16, 5)))]:
            with self.subTest(flags=flags, columns=list(records[0])):
                rate = {"rate": rate[0]} if rate else {}
                self.check(self.trained(records, *flags, **rate), *self.reference(records, loss, **rate))

    def test_ranks_share_a_batch(self):
        uneven = [TRIPLETS[0], PAIRS[1], *TRIPLETS[2:4]]
        for records, flags, loss in [(TRIPLETS[:4], ("--symmetric",), ranking(symmetric=True)), (uneven, ("--mini_batch_size", "1"), ranking()),
                                     (LABELLED[:2] + LABELLED[3:], (), triplets()), (SCORED[:4], (), cosent()), (SCORED[:4], ("--loss", "cosine"), cosine)]:
            with self.subTest(flags=flags):
                self.check(self.trained(records, *flags, "--batch_size", "2", "--processes", "2"), *self.reference(records, loss))

    def test_mini_batches_have_the_gradients_of_the_batch(self):
        whole, pieces = (safetensors.torch.load_file(self.trained(TRIPLETS, *words) / "final/model.safetensors")
                         for words in ((), ("--mini_batch_size", "2")))
        for name, tensor in whole.items():
            self.assertLessEqual((pieces[name] - tensor).abs().max().item(), 1e-6, name)

    def sentence_directory(self):
        """With prompts that are not pooled, and a Dense with its weights in a file of its own."""
        for file in (self.root / "bert").iterdir():
            self.write("sentences/" + file.name, "")
            (self.root / "sentences" / file.name).write_bytes(file.read_bytes())
        types = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Normalize", "3_Normalize")]
        self.write("sentences/modules.json", [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
                                              for i, (kind, path) in enumerate(types)])
        self.write("sentences/1_Pooling/config.json", {"embedding_dimension": 16, "pooling_mode": "mean", "include_prompt": False})
        self.write("sentences/2_Dense/config.json", {"in_features": 16, "out_features": 9, "bias": True,
                                                     "activation_function": "torch.nn.modules.activation.Tanh"})
        self.write("sentences/config_sentence_transformers.json", {
            "prompts": {"query": "god said: ", "document": "earth "}, "similarity_fn_name": "dot", "truncate_dim": 5})
        torch.manual_seed(5)
        dense = torch.nn.Linear(16, 9)
        tensors = {"linear." + name: tensor for name, tensor in dense.state_dict().items()}
        safetensors.torch.save_file(tensors, self.root / "sentences/2_Dense/model.safetensors")
        torch.save(tensors, self.root / "sentences/2_Dense/pytorch_model.bin")  # would be of before the training
        return dense.double()

    def test_modules_and_prompts(self):
        dense = self.sentence_directory()
        words, rate = ("--query_prompt_name", "query", "--document_prompt_name", "document"), 0.001
        run = self.trained(PAIRS, *words, model="sentences", rate=rate)
        prompted = [{"prompt": prompt, "skip": True} for prompt in ("god said: ", "earth ")]
        losses, model = self.reference(PAIRS, ranking(), query=prompted[0], document=prompted[1],
                                       then=lambda x: normalize(torch.tanh(dense(x)), dim=-1), more=dense.parameters(), rate=rate)
        self.check(run, losses, model)
        weights = safetensors.torch.load_file(run / "final/2_Dense/model.safetensors")
        self.assertEqual(set(weights), {"linear.weight", "linear.bias"})
        for name, tensor in weights.items():
            theirs = dense.state_dict()[name.removeprefix("linear.")]
            self.assertLessEqual((tensor - theirs).abs().max().item(), 1e-5 * theirs.abs().max().item())
        self.assertFalse((run / "final/2_Dense/pytorch_model.bin").exists())
        for file in "modules.json", "config_sentence_transformers.json", "1_Pooling/config.json", "2_Dense/config.json", "tokenizer.json":
            self.assertEqual((run / "final" / file).read_bytes(), (self.root / "sentences" / file).read_bytes(), file)
        # embed reads it, with the trained Dense.
        found = lines("embed", "--model", str(run / "final"), "--text", TEXTS[0], "--prompt_name", "query")
        with torch.no_grad():
            x = self.vectors(model, TEXTS[:1], **prompted[0], then=lambda x: normalize(torch.tanh(dense(x)), dim=-1))
        self.assertLess((torch.tensor(found[0]["embedding"]) - x[0, :5]).abs().max().item(), 1e-5)
        # evaluate measures as the run did, with its prompts.
        last = self.metrics(run)[-1]
        self.assertEqual(last["iter"], STEPS)
        figures = self.evaluated(run / "final")
        self.assertEqual(figures, {name: last["val_" + name] for name in ("accuracy", "mrr_at_10", "ndcg_at_10", "recall_at_10")})
        # A resumed run has all weights of its modules.
        half = self.trained(PAIRS, *words, model="sentences", steps=2, rate=rate)
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(half), "--max_iters", str(STEPS))
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in "model.safetensors", "2_Dense/model.safetensors":
            self.assertEqual((half / "final" / file).read_bytes(), (run / "final" / file).read_bytes(), file)

    def test_losses_of_narrow_vectors_are_computed_in_float32(self):
        self.sentence_directory()
        modules = json.loads((self.root / "sentences/modules.json").read_text())
        self.write("sentences/modules.json", modules[:-1])  # the Dense is the last
        for words in ((), ("--loss", "cosine")):
            exact, narrow = (self.metrics(self.trained(SCORED, *words, *dtype, model="sentences", steps=1))
                             for dtype in ((), ("--dtype", "float16")))
            for key in "train_loss", "val_loss":
                self.assertAlmostEqual(narrow[0][key] / exact[0][key], 1, delta=0.02)

    def test_directory_of_a_plain_checkpoint(self):
        done, run = self.train(PAIRS, steps=1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean pooling", done.stderr)
        modules = json.loads((run / "final/modules.json").read_text())
        self.assertEqual([(module["idx"], module["path"], module["type"]) for module in modules],
                         [(0, "", "sentence_transformers.models.Transformer"), (1, "1_Pooling", "sentence_transformers.models.Pooling")])
        pooling = json.loads((run / "final/1_Pooling/config.json").read_text())
        self.assertEqual(pooling["word_embedding_dimension"], 16)
        self.assertEqual([key for key, value in pooling.items() if value is True and key.startswith("pooling")], ["pooling_mode_mean_tokens"])
        self.assertEqual(json.loads((run / "final/sentence_bert_config.json").read_text())["max_seq_length"], None)
        model = transformers.BertModel.from_pretrained(run / "final")
        found = lines("embed", "--model", str(run / "final"), "--input", "-", stdin="\n".join(TEXTS))
        with torch.no_grad():
            x = self.vectors(model, TEXTS)
        self.assertLess((torch.tensor([line["embedding"] for line in found]) - x).abs().max().item(), 1e-5)

    def test_a_decoder(self):
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        model = shaken(transformers.GPT2Model(transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=200, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0)), 0.1)
        model.save_pretrained(self.root / "gpt2")
        tokenizer.save_pretrained(self.root / "gpt2")
        run = self.trained(PAIRS, model="gpt2", steps=1)
        with torch.no_grad():
            a, b = ([model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
                    for texts in (TEXTS, POSITIVES))
            loss = ranking()(torch.stack(a), torch.stack(b), None).item()
        self.assertAlmostEqual(self.metrics(run)[0]["train_loss"] / loss, 1, delta=1e-5)

    def test_figures(self):
        with torch.no_grad():
            a, b = self.vectors(self.model, TEXTS), self.vectors(self.model, POSITIVES + NEGATIVES)
            scores = cosines(a, b)

        def ranks_of(scores):
            return [1 + sum(score > row[i] for score in row).item() for i, row in enumerate(scores)]

        ranks = ranks_of(scores)
        first = self.metrics(self.trained(TRIPLETS, steps=1))[0]
        for name, value in [("accuracy", sum(rank == 1 for rank in ranks) / 5), ("mrr_at_10", sum(1 / rank for rank in ranks) / 5),
                            ("ndcg_at_10", sum(1 / math.log2(1 + rank) for rank in ranks) / 5)]:
            self.assertAlmostEqual(first["val_" + name], value, places=6)
            self.assertAlmostEqual(self.evaluated(self.root / "bert", "--dataset", self.rows(TRIPLETS))[name], value, places=6)
        # A document that several rows have as their positive does not rank before itself, but thrice before others.
        thrice = self.evaluated(self.root / "bert", "--dataset", self.rows(TRIPLETS * 3))
        ranks = [3 * rank - 2 for rank in ranks]
        self.assertEqual(thrice["accuracy"], sum(rank == 1 for rank in ranks) / 5)
        self.assertAlmostEqual(thrice["mrr_at_10"], sum(1 / rank for rank in ranks if rank <= 10) / 5, places=6)
        found = scores.diagonal().tolist()
        places = [sorted(found).index(x) + 1 for x in found]
        wanted = [5, 1, 3.5, 3.5, 2]
        covariance = sum((x - 3) * (y - 3) for x, y in zip(places, wanted))
        first = self.metrics(self.trained(SCORED, steps=1))[0]
        self.assertAlmostEqual(first["val_spearman"], covariance / math.sqrt(10 * 9.5), places=6)
        figures = self.evaluated(self.root / "bert", "--dataset", self.rows(SCORED), "--task", "embedding")
        self.assertEqual(figures, {"spearman": first["val_spearman"]})
        # As embed and rank use the model: its similarity, and the leading numbers of its vectors.
        dense = self.sentence_directory().float()
        with torch.no_grad():
            a, b = (self.vectors(self.model, texts, then=lambda x: normalize(torch.tanh(dense(x)), dim=-1))[:, :5]
                    for texts in (TEXTS, POSITIVES + NEGATIVES))
        seen = set()
        for name, scores in (("cosine", cosines(a, b)), ("dot", a @ b.T), ("euclidean", -torch.cdist(a, b)), ("manhattan", -torch.cdist(a, b, 1))):
            self.write("sentences/config_sentence_transformers.json", {"similarity_fn_name": name, "truncate_dim": 5})
            evaluated = [self.evaluated(self.root / "sentences", "--dataset", self.rows(rows), "--task", "embedding") for rows in (TRIPLETS, SCORED)]
            value = sum(1 / rank for rank in ranks_of(scores)) / 5
            self.assertAlmostEqual(evaluated[0]["mrr_at_10"], value, places=6)
            found = scores.diagonal().tolist()
            value = sum((sorted(found).index(x) - 2) * (y - 3) for x, y in zip(found, wanted)) / math.sqrt(10 * 9.5)
            self.assertAlmostEqual(evaluated[1]["spearman"], value, places=6)
            seen.add((evaluated[0]["mrr_at_10"], value))
        self.assertGreater(len(seen), 2)

    def test_shapes_of_files(self):
        tables = {"plain.tsv": "".join(f"{r['anchor']}\t{r['positive']}\t{r['negative']}\n" for r in TRIPLETS),
                  "named.tsv": "negative\tquery\tid\tpositive\n" + "".join(f"{r['negative']}\t{r['anchor']}\t7\t{r['positive']}\n" for r in TRIPLETS),
                  "lists.jsonl": "".join(json.dumps({"query": r["anchor"], "positive": r["positive"], "negatives": [r["negative"]]}) + "\n"
                                         for r in TRIPLETS)}
        wanted = self.metrics(self.trained(TRIPLETS, steps=1))[0]["train_loss"]
        for name, text in tables.items():
            self.assertEqual(self.metrics(self.trained(self.write(name, text), steps=1))[0]["train_loss"], wanted, name)
        scored = self.write("scored.tsv", "".join(f"{r['sentence1']}\t{r['sentence2']}\t{r['score']}\n" for r in SCORED))
        self.assertEqual(self.metrics(self.trained(scored, steps=1))[0]["train_loss"], self.metrics(self.trained(SCORED, steps=1))[0]["train_loss"])

    def test_what_is_refused(self):
        for records, words, said in [
                (PAIRS, ("--loss", "cosent"), "line 1: the loss cosent needs sentence1, sentence2 and score"),
                (SCORED, ("--loss", "multiple_negatives_ranking"), "needs anchor and positive"),
                ([SCORED[0] | {"score": 4}, SCORED[1]], ("--loss", "cosine"), "scores from -1 to 1, as cosines are; found 4"),
                (SCORED, ("--symmetric",), "--symmetric: only for --loss multiple_negatives_ranking"),
                (SCORED, ("--loss", "cosine", "--scale", "2"), "--scale"),
                (PAIRS, ("--matryoshka_dims", "8,17"), "--matryoshka_dims 17: the model's vectors have only 16"),
                (PAIRS, ("--matryoshka_dims", "8;4"), "--matryoshka_dims: expected sizes"), (PAIRS, ("--matryoshka_dims", "8,"), "--matryoshka_dims: expected sizes"),
                (PAIRS, ("--query_prompt_name", "query"), "there is no prompt 'query'"),
                (PAIRS, ("--label_smoothing", "0.1"), "--label_smoothing: not for the task embedding"),
                (PAIRS, ("--disagreement", "positions"), "--disagreement: not for the task embedding"),
                ([{"anchor": "a", "positive": ""}], (), "rows.jsonl, line 1: 'positive' is missing or empty"),
                ([{"anchor": "a", "positve": "b"}], (), "did you mean 'positive'"),
                ([SCORED[0] | {"score": "much"}], (), "line 1: 'score' must be a number, found 'much'"),
                ([PAIRS[0] | {"negative": 3}], (), "negatives must be texts, found 3")]:
            with self.subTest(said):
                done, run = self.train(records, *words)
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())
        self.sentence_directory()
        modules = json.loads((self.root / "sentences/modules.json").read_text())
        self.write("sentences/modules.json", [*modules[:2], modules[2] | {"type": "sentence_transformers.models.Dropout"}])
        done, _ = self.train(PAIRS, model="sentences")
        self.assertIn("a Dropout after the transformer cannot be trained", done.stderr)
        done, _ = self.train(PAIRS, "--symmetric", task="mlm")
        self.assertIn("--symmetric: only for the task embedding, not mlm", done.stderr)
        done = tzoo("train", "--task", "embedding", "--dataset", self.rows(PAIRS), "--out_dir", str(self.root / "none"))
        self.assertIn("--task embedding tunes a model that exists; name it with --init_from DIR", done.stderr)

    def test_adapters(self):
        run = self.trained(PAIRS, "--lora_rank", "2")
        step = next((run / "checkpoints").iterdir())
        before = safetensors.torch.load_file(step / "model.safetensors")["encoder.layer.0.attention.self.query.weight"]
        after = safetensors.torch.load_file(run / "final/model.safetensors")["encoder.layer.0.attention.self.query.weight"]
        self.assertTrue(before.equal(self.model.state_dict()["encoder.layer.0.attention.self.query.weight"]))
        self.assertGreater((after - before).abs().max().item(), 0)
        self.assertLess(self.metrics(run)[-1]["train_loss"], self.metrics(run)[0]["train_loss"])
        self.sentence_directory()
        done, run = self.train(PAIRS, "--lora_rank", "2", model="sentences", steps=1)
        self.assertIn("note: with --lora_rank the weights of a Dense or LayerNorm module stay as they are", done.stderr)

    def test_numbers_that_are_not_finite_rank_nothing(self):
        weights = safetensors.torch.load_file(self.root / "bert/model.safetensors")
        weights["embeddings.word_embeddings.weight"][:] = math.nan
        (self.root / "nan").mkdir()
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            (self.root / "nan" / name).write_bytes((self.root / "bert" / name).read_bytes())
        safetensors.torch.save_file(weights, self.root / "nan/model.safetensors", {"format": "pt"})
        for records in (TRIPLETS, SCORED):
            done = tzoo("evaluate", "--model", str(self.root / "nan"), "--dataset", self.rows(records), "--task", "embedding")
            self.assertEqual((done.returncode, done.stderr.count("error: the vector of a text is not finite")), (1, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
