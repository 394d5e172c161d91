"""tzoo data list, get, make and prepare."""

import array
import hashlib
import json
import os
import tempfile
import unittest

from tzoo_runner import CommandTest, run


class DataTest(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)


class List(DataTest):
    def test_corpora_and_toy_sets_are_listed(self):
        text = self.succeed("data", "list")
        self.assertRegex(text, r"(?m)^  kjv +4,153,204 ")
        self.assertRegex(text, r"(?m)^  addition +\w")

    def test_json_has_the_hash_of_each_corpus(self):
        found = json.loads(self.succeed("data", "list", "--json"))
        self.assertEqual({c["name"] for c in found["corpora"]}, {"kjv", "tinyshakespeare", "kjv-groups", "kjv-groups-held-out"})
        for corpus in found["corpora"]:
            self.assertRegex(corpus["sha256"], r"^[0-9a-f]{64}$")
        self.assertIn("copy", {s["name"] for s in found["toy_sets"]})


class Get(DataTest):
    def test_the_embedded_corpus_is_what_its_hash_says(self):
        path = self.succeed("data", "get", "kjv", TZOO_DATA_DIR=self.path("cache")).rstrip("\n")
        self.assertTrue(path.startswith(self.path("cache")))
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        listed = json.loads(self.succeed("data", "list", "--json"))["corpora"]
        self.assertEqual([c["sha256"] for c in listed if c["name"] == "kjv"], [digest])

        copy = self.path("copy.txt")
        out = self.succeed("data", "get", "kjv", "--output", copy, TZOO_DATA_DIR=self.path("cache"))
        self.assertEqual(out, copy + "\n")
        with open(copy, "rb") as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest(), digest)

    def test_a_file_with_another_hash_is_refused_and_nothing_is_kept(self):
        wrong = self.write("wrong.txt", b"no Shakespeare\n")
        result = run("data", "get", "tinyshakespeare", "--file", wrong, TZOO_DATA_DIR=self.path("cache"))
        self.assert_one_error(result, 1, wrong, "SHA-256")
        self.assertEqual([f for f in os.listdir(self.folder) if f != "wrong.txt"], [])

    def test_an_unknown_corpus_names_the_nearest(self):
        self.assert_one_error(run("data", "get", "tinyshakespear"), 2, "did you mean 'tinyshakespeare'?")
        self.assert_one_error(run("data", "get"), 2, "'name'")
        self.assert_one_error(run("data", "get", "kjv", "more"), 2, "'more'")


class Make(DataTest):
    def test_lines_depend_on_name_count_and_seed_only(self):
        first = self.succeed("data", "make", "addition", "--count", "50", "--seed", "7")
        self.assertEqual(first.count("\n"), 50)
        for line in first.splitlines():
            left, right = line.split("=")
            self.assertEqual(sum(map(int, left.split("+"))), int(right))
        self.assertEqual(first, self.succeed("data", "make", "addition", "--count", "50", "--seed", "7"))
        self.assertNotEqual(first, self.succeed("data", "make", "addition", "--count", "50", "--seed", "8"))

    def test_the_lines_go_to_a_file(self):
        out = self.succeed("data", "make", "copy", "--count", "5", "--output", self.path("copy.txt"))
        self.assertEqual(out, "")
        with open(self.path("copy.txt")) as file:
            self.assertEqual(file.read(), self.succeed("data", "make", "copy", "--count", "5"))

    def test_mistakes_are_named(self):
        self.assert_one_error(run("data", "make", "copi"), 2, "did you mean 'copy'?")
        self.assert_one_error(run("data", "make", "copy", "--count", "0"), 2, "--count", "'0'")
        result = run("data", "make", "copy", "--output", self.path("nix/copy.txt"))
        self.assert_one_error(result, 1, self.path("nix/copy.txt"))


class Prepare(DataTest):
    def ids(self, name):
        with open(self.path(name), "rb") as file:
            return list(array.array("H", file.read()))

    def test_the_files_are_nanogpts(self):
        text = "to be or not to bé, that is\n" * 3
        source = self.write("text.txt", text.encode())
        self.succeed("data", "prepare", source, "--tokenizer", "char", "--out_dir", self.path("out"))
        order = sorted(set(text))
        cut = int(len(text) * 0.9)
        self.assertEqual(self.ids("out/train.bin"), [order.index(c) for c in text[:cut]])
        self.assertEqual(self.ids("out/val.bin"), [order.index(c) for c in text[cut:]])
        with open(self.path("out/meta.json")) as file:
            meta = json.load(file)
        self.assertEqual((meta["vocab_size"], meta["train_tokens"], meta["dtype"]), (len(order), cut, "uint16"))
        # The tokenizer lies beside them.
        encoded = self.succeed("tokenizer", "encode", "--model", self.path("out"), "--json", stdin="to")
        self.assertEqual(json.loads(encoded), [order.index("t"), order.index("o")])

    def test_a_trained_tokenizer_is_used(self):
        source = self.write("text.txt", b"abab")
        self.succeed("data", "prepare", source, "--tokenizer", "char", "--out_dir", self.path("ab"))
        other = self.write("other.txt", b"bbbbbbbbbbbbbbbbbbbb")
        self.succeed("data", "prepare", other, "--tokenizer", self.path("ab"), "--out_dir", self.path("out"))
        self.assertEqual(self.ids("out/train.bin"), [1] * 18)

    def test_files_are_replaced_only_if_asked(self):
        prepare = ["data", "prepare", self.write("text.txt", b"abc" * 20), "--out_dir", self.path("out")]
        self.succeed(*prepare)
        self.assert_one_error(run(*prepare), 1, self.path("out"), "--overwrite")
        self.succeed(*prepare, "--overwrite")
        # The files of another kind would stay beside it.
        self.assert_one_error(run(*prepare, "--overwrite", "--tokenizer", "byte"), 1, "of kind char", "directory for byte")

    def test_sentencepiece_learns_the_vocabulary_from_the_text(self):
        text = "".join(f"one {n} two {n * n}\n" for n in range(200))
        source = self.write("text.txt", text.encode())
        words = ["--tokenizer", "sentencepiece", "--vocab_size", "40", "--out_dir", self.path("out")]
        self.succeed("data", "prepare", source, *words)
        with open(self.path("out/meta.json")) as file:
            self.assertEqual(json.load(file)["vocab_size"], 40)
        decoded = self.succeed("tokenizer", "decode", "--model", self.path("out"), stdin=json.dumps(self.ids("out/train.bin")))
        self.assertEqual(decoded, text[: int(len(text) * 0.9)] + "\n")

    def test_the_texts_of_a_jsonl_file_are_documents(self):
        # Three megabytes, so that several parts are encoded; 257 tokens are the bytes and the end token.
        texts = [f"{n}: " + "word é " * (n % 50) for n in range(20000)]
        rows = [json.dumps({"text": text, "id": n}) for n, text in enumerate(texts)]
        source = self.write("texts.jsonl", "".join(row + "\n" for row in rows).encode())
        prepare = ["data", "prepare", source, "--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("out")]
        result = run(*prepare)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("ignoring id; only 'text' is read", result.err)
        with open(self.path("out/tokenizer.json")) as file:
            end = next(token["id"] for token in json.load(file)["added_tokens"] if token["content"] == "<|endoftext|>")
        lengths, found = [], [self.ids("out/train.bin"), self.ids("out/val.bin")]
        for ids in found:
            self.assertEqual(ids[-1], end)
            begin = 0
            for place in (i for i, token in enumerate(ids) if token == end):
                lengths.append(place - begin)
                begin = place + 1
        self.assertEqual(lengths, [len(text.encode()) for text in texts])
        self.assertAlmostEqual(len(found[1]) / sum(map(len, found)), 0.1, delta=0.001)
        decoded = self.succeed("tokenizer", "decode", "--model", self.path("out"), stdin=json.dumps(found[1]))
        self.assertEqual(decoded, "".join(texts[found[0].count(end):]) + "\n")

        rows[15000] = '{"text": 1'
        broken = self.write("broken.jsonl", "\n".join(rows).encode())
        self.assert_one_error(run(*prepare[:2], broken, *prepare[3:], "--overwrite"), 1, "broken.jsonl, line 15001")
        self.assert_one_error(run(*prepare[:2], source, "--tokenizer", "char", "--out_dir", self.path("chars")), 1, "no token that ends")

    def test_a_table_with_columns_has_documents_too(self):
        rows = self.write("rows.jsonl", b'{"text": "a b, a"}\n{"text": "b\\nb"}\n{"text": "a a"}\n{"text": "b"}\n')
        self.succeed("data", "prepare", rows, "--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("rows"))
        for name, table in (("t.csv", 'id,text\n1,"a b, a"\n2,"b\nb"\n3,a a\n4,b\n'), ("T.CSV", 'text\n"a b, a"\n"b\nb"\na a\nb\n')):
            source = self.write(name, table.encode())
            result = run("data", "prepare", source, "--tokenizer", self.path("rows"), "--out_dir", self.path(name + " out"))
            self.assertEqual((result.code, "ignoring id; only 'text' is read" in result.err), (0, name == "t.csv"), result)
            for split in ("train.bin", "val.bin"):
                self.assertEqual(self.ids(f"{name} out/{split}"), self.ids(f"rows/{split}"))
            self.assertIn("5 tokens", self.succeed("tokenizer", "train", "--kind", "char", "--input", source, "--out_dir", self.path(name + " tok")))

    def test_empty_texts_are_left_out(self):
        source = self.write("gaps.jsonl", b'{"text": "one"}\n{"text": ""}\n{"text": "two"}\n')
        result = run("data", "prepare", source, "--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("gaps"))
        self.assertEqual((result.code, len(self.ids("gaps/train.bin") + self.ids("gaps/val.bin"))), (0, 8), result)
        self.assertIn("note: 1 rows have an empty text and are left out", result.err)
        absent = self.write("absent.jsonl", b'{"text": "one"}\n{"body": "two"}\n')
        result = run("data", "prepare", absent, "--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("absent"))
        self.assert_one_error(result, 1, "line 2: 'text' is missing or empty")
        self.assertNotIn("--columns", result.err)

    def test_a_number_is_no_text_and_an_empty_file_is_named(self):
        words = ["--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("typed"), "--overwrite"]
        for value in "5", "true", "1.5":
            source = self.write("typed.jsonl", f'{{"text": "one"}}\n{{"text": {value}}}\n{{"text": "two"}}\n'.encode())
            self.assert_one_error(run("data", "prepare", source, *words), 1, "typed.jsonl, line 2: 'text' must be a text")
        for name, content in (("a", b'{"text": "one"}'), ("b", b""), ("c", b'{"text": "two"}\n')):
            self.write(f"shard-{name}.jsonl", content)
        result = run("data", "prepare", self.path("shard-*.jsonl"), *words, TZOO_DATA_DIR=self.path("cache"))
        self.assertEqual((result.code, len(self.ids("typed/train.bin") + self.ids("typed/val.bin"))), (0, 8), result)
        self.assertIn('shard-b.jsonl" is empty\n', result.err)
        self.assertEqual(result.err.count("is empty"), 1)

    def test_a_long_last_document_validates(self):
        rows = ['{"text": "in the beginning"}'] * 5 + [json.dumps({"text": "and the earth was without form " * 9})]
        for end in ("\n", ""):
            source = self.write("few.jsonl", ("\n".join(rows) + end).encode())
            self.succeed("data", "prepare", source, "--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", self.path("few"), "--overwrite")
            decoded = self.succeed("tokenizer", "decode", "--model", self.path("few"), stdin=json.dumps(self.ids("few/val.bin")))
            self.assertEqual(decoded, json.loads(rows[-1])["text"] + "\n")

    def test_mistakes_are_named_and_nothing_is_written(self):
        source = self.write("text.txt", b"some text")
        bad = self.write("bad.txt", b"line\nline \xff\n")
        empty = self.write("empty.txt", b"")
        out = ["--out_dir", self.path("out")]
        self.assert_one_error(run("data", "prepare", source, "--tokenizer", "chr", *out), 1, "'chr'", "'char'")
        self.assert_one_error(run("data", "prepare", bad, *out), 1, bad, "line 2")
        self.assert_one_error(run("data", "prepare", empty, *out), 1, empty)
        self.assert_one_error(run("data", "prepare", self.path("nix"), *out), 1, self.path("nix"))
        self.assert_one_error(run("data", "prepare", source), 2, "--out_dir")
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    unittest.main()
