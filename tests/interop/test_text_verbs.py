"""tzoo classify, fill-mask and translate beside transformers: small random models, a WordPiece vocabulary."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import tokenizers
import torch
import transformers

from text_models import TEXTS, tzoo, wordpiece



class TextVerbsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name
        self.tokenizer = wordpiece()
        self.tokenizer.save_pretrained(self.directory)

    def make(self, model_class, seed=0, **config):
        torch.manual_seed(seed)
        model = model_class(transformers.BertConfig(
            vocab_size=len(self.tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=64, **config)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.4)
        model.save_pretrained(self.directory)
        return model

    def lines(self, *words, stdin=None):
        done = tzoo(*words, "--model", self.directory, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def encode(self, *texts):
        return self.tokenizer(*texts, return_tensors="pt", truncation=True, max_length=64)

    @torch.no_grad()
    def test_classify_sequences(self):
        names = {0: "bad", 1: "good", 2: "neither"}
        model = self.make(transformers.BertForSequenceClassification, id2label=names,
                          label2id={name: i for i, name in names.items()})
        found = self.lines("classify", "--input", "-", "--batch_size", "2", stdin="\n".join(TEXTS))
        for text, line in zip(TEXTS, found, strict=True):
            scores = model(**self.encode(text)).logits[0].softmax(0)
            self.assertEqual(line["text"], text)
            self.assertEqual(line["label"], names[int(scores.argmax())])
            for i, name in names.items():
                self.assertAlmostEqual(line["scores"][name], float(scores[i]), places=5)
        config = pathlib.Path(self.directory, "config.json")  # two labels of one name
        config.write_text(config.read_text().replace('"neither"', '"bad"'))
        again = self.lines("classify", "--text", TEXTS[0])[0]["scores"]
        self.assertEqual(list(again), ["bad", "good", "bad (2)"])
        for score, known in zip(again.values(), found[0]["scores"].values(), strict=True):
            self.assertAlmostEqual(score, known, places=5)
        config.write_text(config.read_text().replace('"2": "bad"', '"2": "neither"'))
        objects = pathlib.Path(self.directory, "texts.jsonl")
        objects.write_text("".join(json.dumps({"text": text, "more": 1}) + "\n" for text in TEXTS))
        self.assertEqual(self.lines("classify", "--input", str(objects))[4]["label"], found[4]["label"])

    @torch.no_grad()
    def test_classify_pairs(self):
        model = self.make(transformers.BertForSequenceClassification, num_labels=3)
        pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0]), ("word", TEXTS[4] * 2), (TEXTS[2], "earth"), (TEXTS[3], "")]
        expected = [model(**self.encode(*filter(None, pair))).logits[0].softmax(0).tolist() for pair in pairs]
        self.assertGreater(abs(expected[0][0] - expected[1][0]), 1e-3)
        path = lambda name: pathlib.Path(self.directory, name)
        path("pairs.jsonl").write_text("".join(json.dumps({"text": a, **({"text_pair": b} if b else {}), "label": "x", "id": 7}) + "\n" for a, b in pairs))
        path("pairs.tsv").write_text("".join(f"{a}\tx\t{b}\n" for a, b in pairs))  # the columns of a training
        path("named.tsv").write_text("text_pair\ttext\n" + "".join(f"{b}\t{a}\n" for a, b in pairs))
        texts = [word for pair in pairs for word in ("--text", pair[0], "--text_pair", pair[1])]
        for words in (texts, ["--input", path("pairs.jsonl")], ["--input", path("pairs.tsv")], ["--input", path("named.tsv")]):
            for line, pair, scores in zip(self.lines("classify", "--batch_size", "2", *map(str, words)), pairs, expected, strict=True):
                self.assertEqual((line["text"], line.get("text_pair", "")), pair)
                for found, score in zip(line["scores"].values(), scores):
                    self.assertAlmostEqual(found, score, places=5)
        done = tzoo("classify", "--model", self.directory, "--input", str(path("pairs.jsonl")))
        self.assertIn("pairs.jsonl: ignoring id, which this command does not read", done.stderr)
        path("wrong.jsonl").write_text('{"text": "a"}\n{"text": "a", "text_pairs": "b"}\n')
        for words, needed in ((["--input", str(path("wrong.jsonl"))], "wrong.jsonl, line 2: unknown name 'text_pairs'; did you mean 'text_pair'?"),
                              (["--text", "a", "--text_pair", "b", "--text_pair", "c"], "--text_pair: expected one for each --text")):
            done = tzoo("classify", "--model", self.directory, *words)
            self.assertIn(needed, done.stderr)
            self.assertNotIn("--columns", done.stderr)
            self.assertIn(done.returncode, (1, 2))
        for name, text in (("labels.jsonl", '{"text": "word", "labels": 1}\n'), ("labels.tsv", "text\tlabels\nword\t1\n")):  # "label" is not read
            path(name).write_text(text)
            self.assertEqual(len(self.lines("classify", "--input", str(path(name)))), 1)
        self.make(transformers.BertForTokenClassification)
        self.assertIn("text_pair: expected none", tzoo("classify", "--model", self.directory, "--text", "a", "--text_pair", "b").stderr)

    @torch.no_grad()
    def test_several_labels_and_regression(self):
        model = self.make(transformers.BertForSequenceClassification, num_labels=3,
                          problem_type="multi_label_classification")
        line = self.lines("classify", "--text", TEXTS[0])[0]
        scores = model(**self.encode(TEXTS[0])).logits[0].sigmoid()
        self.assertNotIn("label", line)
        self.assertAlmostEqual(line["scores"]["LABEL_1"], float(scores[1]), places=5)
        model = self.make(transformers.BertForSequenceClassification, num_labels=1)
        line = self.lines("classify", "--text", TEXTS[0])[0]
        logit = model(**self.encode(TEXTS[0])).logits[0, 0]
        self.assertAlmostEqual(line["value"][0], float(logit), places=4)
        self.assertAlmostEqual(line["scores"]["LABEL_0"], float(logit.sigmoid()), places=5)  # the pipeline's score

    @torch.no_grad()
    def test_fill_mask(self):
        model = self.make(transformers.BertForMaskedLM)
        text = "In the [MASK] God created the [MASK]."
        count = len(self.tokenizer)  # [PAD], too
        line = self.lines("fill-mask", "--text", text, "--top_k", str(count), "--json")[0]
        batch = self.encode(text)
        places = (batch["input_ids"][0] == self.tokenizer.mask_token_id).nonzero()[:, 0]
        for place, guesses in zip(places, line["masks"], strict=True):
            values, ids = model(**batch).logits[0, place].softmax(0).topk(count)
            self.assertEqual([g["id"] for g in guesses], ids.tolist())
            self.assertEqual([g["token"] for g in guesses], self.tokenizer.convert_ids_to_tokens(ids.tolist()))
            for guess, value in zip(guesses, values, strict=True):
                self.assertAlmostEqual(guess["score"], float(value), places=5)
            for guess in guesses:  # as transformers' pipeline: the other mask stays visible, padding does not
                filled = batch["input_ids"][0].clone()
                filled[place] = guess["id"]
                self.assertEqual(guess["text"], self.tokenizer.decode(filled[filled != self.tokenizer.pad_token_id]))
        table = tzoo("fill-mask", "--model", self.directory, "--text", text)
        self.assertIn(line["masks"][0][0]["token"], table.stdout)
        self.assertIn("probability", table.stdout)

    @torch.no_grad()
    def test_tokens_beyond_the_vocabulary(self):
        """Somebody added a token without resizing the model: only a text that holds it is an error."""
        model, count = self.make(transformers.BertForMaskedLM), len(self.tokenizer)
        text = "In the [MASK] God created"
        before = self.lines("fill-mask", "--text", text, "--top_k", str(count + 1), "--json")
        self.tokenizer.add_special_tokens({"additional_special_tokens": ["[NEW]"]})
        self.tokenizer.save_pretrained(self.directory)
        self.assertGreater(len(self.tokenizer), model.config.vocab_size)
        self.assertEqual(self.lines("fill-mask", "--text", text, "--top_k", str(count + 1), "--json"), before)
        done = tzoo("fill-mask", "--model", self.directory, "--text", text + "[NEW]")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"the token \"[NEW]\", whose id is {count}, but the model's vocabulary has only {count} rows", done.stderr)
        done = tzoo("tokenizer", "encode", "--model", self.directory, "--json", stdin="[NEW]\n")  # no model looks
        self.assertEqual(json.loads(done.stdout), self.tokenizer("[NEW]").input_ids)

    @torch.no_grad()
    def test_fill_mask_with_half_characters(self):
        """Of a vocabulary of bytes most tokens are half a character: JSON and table show U+FFFD, as the library does."""
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        vocabulary = {token: id for id, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *alphabet])}
        backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = tokenizers.decoders.ByteLevel()
        backend.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="<mask>", pad_token="<pad>")
        tokenizer.save_pretrained(self.directory)
        torch.manual_seed(1)
        config = transformers.RobertaConfig(vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=1, pad_token_id=1,
                                            num_attention_heads=2, intermediate_size=32, max_position_embeddings=40)
        transformers.RobertaForMaskedLM(config).save_pretrained(self.directory)
        text = "caf<mask> 世"
        count = len(vocabulary)
        done = subprocess.run([os.environ["TZOO"], "fill-mask", "--model", self.directory, "--text", text, "--top_k",
                               str(count), "--json"], capture_output=True, timeout=300, check=True)
        ids = tokenizer(text).input_ids
        mask = ids.index(tokenizer.mask_token_id)
        guesses = json.loads(done.stdout.decode())["masks"][0]
        self.assertEqual(len(guesses), count)
        for guess in guesses:
            filled = ids[:mask] + [guess["id"]] + ids[mask + 1:]
            self.assertEqual(guess["text"], tokenizer.decode(filled, skip_special_tokens=True))
        table = subprocess.run([os.environ["TZOO"], "fill-mask", "--model", self.directory, "--text", text, "--top_k",
                                str(count)], capture_output=True, timeout=300, check=True)
        self.assertIn("caf\ufffd 世", table.stdout.decode())

    @torch.no_grad()
    def test_translate(self):
        torch.manual_seed(5)
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            vocab_size=len(self.tokenizer), d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4,
            tie_word_embeddings=False, pad_token_id=0, decoder_start_token_id=0, eos_token_id=3)).eval()
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        model.save_pretrained(self.directory)
        prefix = "and the "
        batch = self.tokenizer([prefix + text for text in TEXTS], return_tensors="pt", padding=True)
        ids = model.generate(batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=12,
                             do_sample=False)[:, 1:].tolist()
        self.assertGreater(len(set(sum(ids, []))), 5)  # a model that repeats itself would hide a fault
        words = ["translate", "--input", "-", "--prefix", prefix, "--max_new_tokens", "12"]
        found = self.lines(*words, "--json", "--batch_size", "3", stdin="\n".join(TEXTS))
        for text, row, line in zip(TEXTS, ids, found, strict=True):
            row = row[:row.index(3) + 1] if 3 in row else row
            self.assertEqual((line["text"], line["ids"]), (text, row))
            self.assertEqual(line["translation"], self.tokenizer.decode(row, skip_special_tokens=True))
        plain = tzoo(*words, "--model", self.directory, stdin="\n".join(TEXTS)).stdout
        self.assertEqual(plain.splitlines(), [line["translation"] for line in found])

    def test_faults(self):
        self.make(transformers.BertForMaskedLM)
        for words, needed in [
            (["classify", "--text", "x"], ["masked-lm", "sequence-classification"]),
            (["fill-mask", "--text", "nothing hidden"], ["[MASK]", "nothing hidden"]),
            (["answer", "--question", "x", "--context", "y"], ["qa_outputs"]),
            (["fill-mask", "--text", "a [MASK]", "--top_k", "0"], ["top_k"]),
        ]:
            done = tzoo(*words, "--model", self.directory)
            self.assertIn(done.returncode, (1, 2))
            self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
            for word in needed:
                self.assertIn(word, done.stderr)
        pathlib.Path(self.directory, "tokenizer.json").unlink()
        done = tzoo("fill-mask", "--text", "a [MASK]", "--model", self.directory)
        self.assertIn("tokenizer", done.stderr)


if __name__ == "__main__":
    unittest.main()
