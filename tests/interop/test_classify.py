"""tzoo classify beside transformers: decoders with every kind of padding, and the pipelines' labels of words."""

import itertools
import json
import pathlib
import tempfile
import unittest

import tokenizers
import torch
import transformers

from text_models import TEXTS, byte_level, configure, lines, shaken, sizes, tzoo, wordpiece

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


class ClassifyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name

    def classify(self, texts, *flags):
        return lines("classify", "--model", self.directory, "--input", "-", *flags, stdin="\n".join(texts))

    def decoder(self, kind, tokenizer, pad_token_id):
        torch.manual_seed(1)
        if kind == "gpt2":
            config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=128,
                                             num_labels=3, pad_token_id=pad_token_id)
            return shaken(transformers.GPT2ForSequenceClassification(config))
        config = transformers.LlamaConfig(**sizes(tokenizer), num_labels=3, pad_token_id=pad_token_id)
        return shaken(transformers.LlamaForSequenceClassification(config))

    @torch.no_grad()
    def test_decoders_find_the_last_token(self):
        """Each text as transformers alone: config.json's pad id none, a pad token's, or one that texts hold."""
        texts = [*TEXTS, "the end!", "!", "a!!"]
        wrong = 0
        for kind, pad, side, config_pad in itertools.product(["gpt2", "llama"], [None, "<pad>"], ["left", "right"],
                                                             [None, 1, "!", "e"]):
            tokenizer = byte_level(eos_token="</s>", padding_side=side, **({"pad_token": pad} if pad else {}))
            config_pad = tokenizer.convert_tokens_to_ids(config_pad) if isinstance(config_pad, str) else config_pad
            model = self.decoder(kind, tokenizer, config_pad)
            model.save_pretrained(self.directory)
            tokenizer.save_pretrained(self.directory)
            for size in "2", "32":
                for text, line in zip(texts, self.classify(texts, "--batch_size", size), strict=True):
                    ids = tokenizer(text, return_tensors="pt")["input_ids"]
                    scores = model(ids).logits[0].softmax(0)
                    for i, score in enumerate(line["scores"].values()):
                        wrong += abs(score - float(scores[i])) > 1e-5
        self.assertEqual(wrong, 0)

    def tagger(self, tokenizer, seed):
        torch.manual_seed(seed)
        names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
        if tokenizer.cls_token == "[CLS]":
            config = transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=256, **names)
            model = transformers.BertForTokenClassification(config)
        else:
            config = transformers.RobertaConfig(**sizes(tokenizer), max_position_embeddings=258, type_vocab_size=1, **names)
            model = transformers.RobertaForTokenClassification(config)
        model = shaken(model)
        model.save_pretrained(self.directory)
        tokenizer.save_pretrained(self.directory)
        return model

    def test_tables_of_words_are_read_as_sentences(self):
        self.tagger(wordpiece(), 0)
        sentences = [["let", "there", "be"], ["light"]]
        expected = self.classify([" ".join(words) for words in sentences])
        tables = {"n.tsv": "let\tO\nthere\tB-PER\nbe\tO\n\nlight\tO\n",
                  "n.jsonl": "".join(json.dumps({"tokens": words, "id": 1}) + "\n" for words in sentences)}
        for name, text in tables.items():
            path = pathlib.Path(self.directory, name)
            path.write_text(text)
            self.assertEqual(lines("classify", "--model", self.directory, "--input", str(path)), expected)

    def pieces(self):
        """XLM-RoBERTa's kind: a space before a word is a token of its own where no piece begins with both."""
        pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", "▁the", "▁in", "the", "i", "X", "7", "8", "中", "."]
        engine = tokenizers.Tokenizer(tokenizers.models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], unk_id=3))
        engine.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
        engine.decoder = tokenizers.decoders.Metaspace()
        engine.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False)
        return engine

    @torch.no_grad()
    def test_the_first_token_of_a_word_has_its_label(self):
        special = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>",
                   "unk_token": "<unk>", "mask_token": "<mask>"}
        spaced = byte_level(**special).backend_tokenizer
        spaced.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
        spaced.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
        rows = [(["the", "7", "in", "中", "."], [0, 1, 0, 2, 0]), (["8", "in", "中"], [1, 0, 3]), (["the", "Xi"], [0, 4])]
        path = pathlib.Path(self.directory, "rows.jsonl")
        path.write_text("".join(json.dumps({"tokens": words, "labels": [LABELS[tag] for tag in tags]}) + "\n" for words, tags in rows))
        for engine in self.pieces(), spaced:
            tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=engine, model_input_names=["input_ids", "attention_mask"], **special)
            model, logits, labels, marks = self.tagger(tokenizer, 3), [], [], 0
            for words, tags in rows:
                encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
                before = None
                for token, word in zip(encoded.tokens(), encoded.word_ids()):
                    is_first, before = word is not None and word != before, word
                    labels.append(tags[word] if is_first else -100)
                    marks += is_first and token in "▁Ġ"
                logits.append(model(**encoded).logits[0])
            self.assertGreater(marks, 3)  # else the test would tell nothing
            done = tzoo("evaluate", "--model", self.directory, "--task", "token_classification", "--dataset", str(path), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            loss = torch.nn.functional.cross_entropy(torch.cat(logits), torch.tensor(labels)).item()
            self.assertAlmostEqual(json.loads(done.stdout)["loss"] / loss, 1, delta=1e-5)

    def test_evaluate_cuts_texts_as_classify_does(self):
        self.decoder("llama", tokenizer := byte_level(eos_token="</s>", pad_token="<pad>"), 1).save_pretrained(self.directory)
        tokenizer.save_pretrained(self.directory)
        configure(self.directory, tokenizer, model_max_length=8)
        path = pathlib.Path(self.directory, "rows.tsv")
        path.write_text("the beginning and the end\t0\nx\t2\n")
        done = tzoo("evaluate", "--model", self.directory, "--dataset", str(path))
        self.assertIn("note: 1 of 2 examples are cut to --block_size 8", done.stderr)
        done = tzoo("classify", "--model", self.directory, "--input", str(path))
        self.assertIn("note: 1 of 2 texts are longer than the 8 tokens that are read, and cut\n", done.stderr)

    def test_every_aggregation(self):
        texts, kinds = [*TEXTS, "  two  spaces ", "unbeginning's end-of-line", "the écu in Ünït é"], set()
        roberta = byte_level(cls_token="<s>", sep_token="</s>", bos_token="<s>", eos_token="</s>", pad_token="<pad>",
                             unk_token="<unk>", mask_token="<mask>", model_max_length=200)
        for tokenizer, seed in itertools.product([wordpiece(), roberta], range(3)):
            model = self.tagger(tokenizer, seed)
            for strategy in "none", "simple", "first", "average", "max":
                pipeline = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer,
                                                 aggregation_strategy=strategy)
                found = self.classify(texts, "--aggregation", strategy, "--batch_size", "3")
                for text, line in zip(texts, found, strict=True):
                    expected = pipeline(text)
                    key = "entity" if strategy == "none" else "entity_group"
                    self.assertEqual([(e["label"], e["start"], e["end"]) for e in line["entities"]],
                                     [(e[key], e["start"], e["end"]) for e in expected], (text, strategy))
                    for ours, theirs in zip(line["entities"], expected, strict=True):
                        self.assertAlmostEqual(ours["score"], float(theirs["score"]), places=5)
                        kinds.add(ours["label"])
            if tokenizer.cls_token == "[CLS]":
                self.assertEqual(self.classify(texts), self.classify(texts, "--aggregation", "first"))
        self.assertEqual(kinds, {"PER", "LOC", *LABELS[1:]})


if __name__ == "__main__":
    unittest.main()
