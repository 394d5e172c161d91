"""Datasets in Parquet, .gz and .zst and patterns of files, beside what pyarrow reads and the same rows as plain lines."""

import gzip
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "third_party/arrow"))

import pyarrow as pa  # noqa: E402 (installed beside, for its C++ libraries)
import pyarrow.parquet  # noqa: E402

from text_models import tzoo  # noqa: E402

PROGRAM = pathlib.Path(os.environ["TZOO_PROGRAM"]).with_name("tzoo-parquet")
TEXTS = [f"{word} number {i} of the {word}s, told again\n" for i in range(12) for word in ("ship", "house", "Ærø", "river")]


class PackedDatasetsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def rows(self, table):
        path = self.root / "rows.parquet"
        pa.parquet.write_table(table, path, row_group_size=3)
        done = subprocess.run([PROGRAM, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.split("\n")[:-1]], done.stderr

    def test_values_are_pyarrows(self):
        rows = [{"text": 'a "quoted"\nline \u2028 🦙', "n": 2**53 + 1, "x": 0.1, "ok": True, "nested": {"ids": [1, None, 3], "name": "é"},
                 "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]},
                {"text": None, "n": -1, "x": -1e300, "ok": None, "nested": None, "messages": []}] * 5000
        table = pa.Table.from_pylist(rows)
        kinds = {"u": pa.uint64(), "i": pa.int8(), "f": pa.float32(), "large": pa.large_string(), "dictionary": None,
                 "list": pa.large_list(pa.int16()), "pair": pa.list_(pa.float64(), 2)}
        values = {"u": 2**64 - 1, "i": -128, "f": 0.5, "large": "länge", "dictionary": "often", "list": [7], "pair": [0.25, 0.5]}
        for name, kind in kinds.items():
            column = pa.array([values[name], None] * 5000, kind)
            table = table.append_column(name, column.dictionary_encode() if kind is None else column)
        read, _ = self.rows(table)
        self.assertEqual(read, table.to_pylist())

    def test_what_json_has_not_is_left_out_by_name(self):
        table = pa.table({"image": pa.array([b"\xff\xd8"]), "text": ["a"], "when": pa.array([0], pa.timestamp("s"))})
        read, notes = self.rows(table)
        self.assertEqual(read, [{"text": "a"}])
        self.assertIn("image, which is binary", notes)
        self.assertIn("when, which is timestamp", notes)

    def test_classes_have_the_names_that_datasets_wrote(self):
        features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}
        table = pa.table({"text": ["a", "b", "c"], "label": [1, 0, -1]})
        read, _ = self.rows(table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}))
        self.assertEqual([row["label"] for row in read], ["good", "bad", None])
        for kind in ("List", "Sequence"):  # of datasets 4 and before
            of_lists = {"label": {"feature": features["label"], "_type": kind}}
            lists = pa.table({"label": [[1, 0], [-1], []]}).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": of_lists}})})
            self.assertEqual(self.rows(lists)[0], [{"label": ["good", "bad"]}, {"label": [None]}, {"label": []}])
        read, _ = self.rows(table.replace_schema_metadata({"huggingface": "{"}))
        self.assertEqual([row["label"] for row in read], [1, 0, -1])

    def train(self, dataset, *words):
        variables = {**os.environ, "TZOO_DATA_DIR": str(self.root / "cache")}
        return tzoo("train", "--dataset", str(dataset), "--out_dir", str(self.root / "run"), "--overwrite", "--tokenizer", "byte",
                    "--n_layer", "1", "--n_embd", "8", "--n_head", "1", "--block_size", "16", "--max_iters", "3", "--eval_interval", "3",
                    "--eval_iters", "2", "--log_interval", "1", "--device", "cpu", *words, env=variables)

    def losses(self, dataset, *words):
        done = self.train(dataset, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics = [json.loads(line) for line in (self.root / "run/metrics.jsonl").read_text().splitlines()]
        losses = [line["train_loss"] for line in metrics if "train_loss" in line]
        self.assertTrue(losses and all(map(math.isfinite, losses)))
        return losses

    def shards(self, folder, pack, ending):
        (self.root / folder).mkdir()
        for i in range(3):
            pack(self.root / folder / f"train-{i}{ending}", TEXTS[16 * i:16 * i + 16])

    def test_packed_texts_train_as_plain_ones(self):
        def jsonl(texts):
            return "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts).encode()  # no line break at the end

        def zstd(path, texts):
            subprocess.run(["zstd", "-q", "-o", path], input=jsonl(texts), check=True)

        self.shards("plain", lambda path, texts: path.write_bytes(jsonl(texts)), ".jsonl")
        self.shards("gz", lambda path, texts: path.write_bytes(gzip.compress(jsonl(texts))), ".jsonl.gz")
        self.shards("zst", zstd, ".jsonl.zst")
        self.shards("parquet", lambda path, texts: pa.parquet.write_table(pa.table({"text": texts}), path), ".parquet")
        (self.root / "all.jsonl").write_bytes(jsonl(TEXTS))
        expected = self.losses(self.root / "all.jsonl")
        for folder, ending in (("plain", "jsonl"), ("gz", "jsonl.gz"), ("zst", "jsonl.zst"), ("parquet", "parquet")):
            self.assertEqual(self.losses(self.root / folder / f"train-*.{ending}"), expected, folder)
        # A plain text, and tokens made of it.
        (self.root / "text.txt").write_text("".join(TEXTS))
        (self.root / "text.txt.gz").write_bytes(gzip.compress("".join(TEXTS).encode()))
        self.assertEqual(self.losses(self.root / "text.txt.gz"), self.losses(self.root / "text.txt"))
        variables = {**os.environ, "TZOO_DATA_DIR": str(self.root / "cache")}
        tokens = set()
        for dataset in ("text.txt", "text.txt.gz"):
            done = tzoo("data", "prepare", str(self.root / dataset), "--tokenizer", "byte", "--out_dir", str(self.root / "tokens"), "--overwrite",
                        env=variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens.add((self.root / "tokens/train.bin").read_bytes())
        self.assertEqual(len(tokens), 1)
        tokens = set()
        for dataset in ("all.jsonl", "gz/train-*.jsonl.gz", "parquet/train-*.parquet"):
            words = ["--tokenizer", "byte_bpe", "--vocab_size", "257", "--out_dir", str(self.root / "documents"), "--overwrite"]
            done = tzoo("data", "prepare", str(self.root / dataset), *words, env=variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens.add(b"".join((self.root / "documents" / name).read_bytes() for name in ("train.bin", "val.bin")))
            done = tzoo("tokenizer", "train", "--kind", "char", "--input", str(self.root / dataset), "--out_dir", str(self.root / "char"), "--overwrite",
                        env=variables)
            self.assertIn(f"char tokenizer of {len(set(''.join(TEXTS)))} tokens", done.stdout)
        self.assertEqual([len(each) for each in tokens], [2 * sum(len(text.encode()) + 1 for text in TEXTS)])
        for i in range(2):  # each with a byte order mark
            (self.root / f"mark{i}.txt").write_text("\ufeffab\n", encoding="utf-8")
        done = tzoo("tokenizer", "train", "--kind", "char", "--input", str(self.root / "mark*.txt"), "--out_dir", str(self.root / "ab"), env=variables)
        self.assertIn("char tokenizer of 3 tokens", done.stdout)

    def test_folders_of_datasets(self):
        def jsonl(path, texts):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

        def arrow(folder, texts):  # as Dataset.save_to_disk() writes it, with a cache beside
            folder.mkdir(parents=True)
            table = pa.table({"text": texts})
            for name, part in (("data-00000-of-00002", table[:5]), ("data-00001-of-00002", table[5:]), ("cache-1f", table[:1])):
                with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
                    stream.write_table(part)
            (folder / "state.json").write_text("{}")

        train, val = TEXTS[:40], TEXTS[40:]
        for name, texts in (("train", train), ("val", val)):
            jsonl(self.root / f"{name}.jsonl", texts)
        expected = self.losses(self.root / "train.jsonl", "--val_dataset", str(self.root / "val.jsonl"))
        jsonl(self.root / "hub/train.jsonl", train)
        jsonl(self.root / "hub/validation.jsonl", val)
        jsonl(self.root / "hub/trainer.jsonl", ["no part of it"])
        (self.root / "data/data").mkdir(parents=True)
        pa.parquet.write_table(pa.table({"text": train[:7]}), self.root / "data/data/train-00000-of-00002.parquet")
        pa.parquet.write_table(pa.table({"text": train[7:]}), self.root / "data/data/train-00001-of-00002.parquet")
        pa.parquet.write_table(pa.table({"text": val}), self.root / "data/data/validation-00000-of-00001.parquet")
        arrow(self.root / "saved/train", train)
        arrow(self.root / "saved/validation", val)
        (self.root / "saved/dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
        jsonl(self.root / "named/train/0.jsonl", train)
        jsonl(self.root / "named/dev/0.jsonl", val)
        for folder in ("hub", "data", "saved", "named"):
            self.assertEqual(self.losses(self.root / folder), expected, folder)
        arrow(self.root / "one", train)
        self.assertEqual(self.losses(self.root / "one", "--val_dataset", str(self.root / "val.jsonl")), expected)
        # What is measured is the part that was held out.
        variables = {**os.environ, "TZOO_DATA_DIR": str(self.root / "cache")}
        said = {tzoo("evaluate", "--model", str(self.root / "run/final"), "--dataset", str(path), "--json", env=variables).stdout
                for path in (self.root / "val.jsonl", self.root / "hub", self.root / "saved")}
        self.assertEqual(len(said), 1, said)
        for path in ("sets/en/train.jsonl", "sets/de/train.jsonl", "kinds/train.jsonl", "kinds/train.csv"):
            jsonl(self.root / path, train)
        for folder, parts in (("sets", "sets/de"), ("kinds", "train[!a-zA-Z]*csv")):
            done = self.train(self.root / folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("holds several datasets", done.stderr)
            self.assertIn(parts, done.stderr)

    def test_a_changed_file_is_unpacked_anew(self):
        path = self.root / "rows.jsonl.gz"
        path.write_bytes(gzip.compress(b'{"text": "one text"}\n' * 20))
        first = self.losses(path)
        self.assertEqual(self.losses(path), first)
        self.assertEqual(len(list((self.root / "cache/unpacked").iterdir())), 1)
        path.write_bytes(gzip.compress(b'{"text": "another one"}\n' * 20))
        self.assertNotEqual(self.losses(path), first)

    def refused(self, dataset, *parts):
        done = self.train(dataset)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        kept = self.root / "cache/unpacked"
        self.assertFalse(list(kept.iterdir()) if kept.exists() else [], "nothing is left of what failed")

    def test_broken_files_are_named(self):
        whole = self.root / "whole.parquet"
        pa.parquet.write_table(pa.table({"text": TEXTS}), whole)
        packed = gzip.compress("".join(TEXTS).encode())
        broken = {"cut.parquet": whole.read_bytes()[:-9], "no.parquet": b"text", "cut.txt.gz": packed[:-20], "no.txt.gz": b"text",
                  "empty.txt.gz": b"", "no.txt.zst": b"text"}
        for name, content in broken.items():
            (self.root / name).write_bytes(content)
            with self.subTest(name):
                self.refused(self.root / name, f"{name}': cannot be unpacked: ")
        damaged = bytearray(whole.read_bytes())
        damaged[30:60] = bytes(30)
        (self.root / "damaged.parquet").write_bytes(damaged)
        self.refused(self.root / "damaged.parquet", "damaged.parquet': cannot be unpacked: ")
        bad = pa.array([b"fine", b"\xff"]).view(pa.utf8())
        pa.parquet.write_table(pa.table({"text": bad}), self.root / "bytes.parquet")
        self.refused(self.root / "bytes.parquet", "row 2", "not UTF-8")
        self.refused(self.root / "none-*.parquet", "no such file")
        self.refused(self.root / "none.parquet", "no such file")
        (self.root / "a1.txt").write_text("text")
        (self.root / "a2.jsonl").write_text("{}")
        self.refused(self.root / "a*", "different kinds")
        for name in ("b1.tsv", "b2.tsv"):
            (self.root / name).write_text("text\tlabel\na\tb\n")
        self.refused(self.root / "b*.tsv", "use .jsonl")
        self.refused(self.root, "is a directory", "/*.jsonl'")

    def test_a_row_without_text_is_named(self):
        pa.parquet.write_table(pa.table({"text": ["a", None, "b"]}), self.root / "rows.parquet")
        done = self.train(self.root / "rows.parquet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 2", done.stderr)
        pa.parquet.write_table(pa.table({"text": ["a text", "", "b text"] * 90}), self.root / "rows.parquet")  # as wikitext's
        done = self.train(self.root / "rows.parquet")
        self.assertEqual((done.returncode, "note: 90 rows have an empty text and are left out" in done.stderr), (0, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
