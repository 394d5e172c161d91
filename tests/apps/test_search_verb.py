"""tzoo search: passages of folders, files and tables, and the index that keeps them."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import PROGRAM, CommandTest, run

QUERY = "the light"


class SearchVerb(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = write_checkpoint(self.folder / "model", tokenizer=True)
        self.notes = self.folder / "notes"
        self.write("a.txt", "in the beginning\n\n\nthe earth\nwas void\n")
        self.write("below/b.txt", "the light\r\n\r\nthe day\r\n")

    def write(self, name, text):
        path = self.notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def words(self, *words, documents=None, index=False, model=None):
        kept = ["--index", self.folder / "index"] if index else []
        return ["search", "--model", model or self.model, "--query", QUERY, "--documents", documents or self.notes, *kept, *words]

    def search(self, *words, **keywords):
        """(file below the folder, line, text) of each hit by its score."""
        hits = [json.loads(line) for line in self.succeed(*self.words("--json", *words, **keywords)).splitlines()]
        self.assertEqual([sorted(hit) for hit in hits], [["file", "line", "score", "text"]] * len(hits))
        self.scores = [hit["score"] for hit in hits]
        self.assertEqual(self.scores, sorted(self.scores, reverse=True))
        return [(os.path.relpath(hit["file"], self.notes), hit["line"], hit["text"]) for hit in hits]

    def test_hits_are_those_of_rank(self):
        self.write("t.jsonl", '{"document": "a dog", "id": 1}\n{"text": "the light"}\n')
        self.write("t.tsv", "id\tdocument\n1\tthe cat\n")
        self.write(".hidden/c.txt", "the light")
        found = self.search()
        self.assertEqual(sorted(found), [
            ("a.txt", 1, "in the beginning"), ("a.txt", 4, "the earth\nwas void"), ("below/b.txt", 1, "the light"),
            ("below/b.txt", 3, "the day"), ("t.jsonl", 1, "a dog"), ("t.jsonl", 2, "the light"), ("t.tsv", 2, "the cat")])
        self.assertEqual([hit[0] for hit in found if hit[2] == QUERY], ["below/b.txt", "t.jsonl"])  # equal scores
        documents = self.folder / "all.jsonl"
        documents.write_text("".join(json.dumps({"document": text}) + "\n" for _, _, text in found))
        ranked = [json.loads(line) for line in
                  self.succeed("rank", "--model", self.model, "--query", QUERY, "--documents", documents).splitlines()]
        self.assertEqual([hit[2] for hit in found], [line["document"] for line in ranked])
        for score, line in zip(self.scores, ranked):
            self.assertAlmostEqual(score, line["score"], delta=1e-6)
        self.assertEqual(self.search("--top_k", 2), found[:2])
        self.assertEqual(sorted(self.search("--documents", self.notes / "a.txt", documents=self.notes / "below/b.txt")),
                         sorted(hit for hit in found if hit[0] in ("a.txt", "below/b.txt")))

    def test_output_for_people(self):
        name = self.write("below/\x1b[31m.txt", "the light " + "and the dog " * 40).parent / r"\x1b[31m.txt"
        result = run(*self.words("--top_k", 2, documents=self.notes / "below"))
        self.assertEqual((result.code, result.err), (0, "note: 1 of 3 texts are longer than the 24 tokens that are read, and cut\n"))
        first, second = result.out.split("\n\n")
        self.assertEqual(first, f"1.0000  {self.notes}/below/b.txt:1\n    the light")
        heading, *text = second.splitlines()
        self.assertRegex(heading, r"^0\.\d{4}  ")
        self.assertTrue(heading.endswith(f"  {name}:1"), heading)
        self.assertEqual((text[0][:13], text[-1][-1]), ("    the light", "…"))
        self.assertLessEqual(max(map(len, text)), 100)

    def test_an_index_follows_the_files(self):
        first = self.search(index=True)
        self.assertEqual(first, self.search())
        changed = os.stat(self.folder / "index/vectors-000000.safetensors").st_mtime_ns
        self.assertEqual(self.search(index=True), first)
        self.assertEqual(os.stat(self.folder / "index/vectors-000000.safetensors").st_mtime_ns, changed)
        # From another folder, of which the index is a part.
        words = self.words("--json", documents=".")
        shutil.move(self.folder / "index", self.notes / "index")
        there = subprocess.run([os.environ["TZOO"], *map(str, words), "--index", "index"], cwd=self.notes, capture_output=True, text=True)
        self.assertEqual((there.stderr, [json.loads(line)["text"] for line in there.stdout.splitlines()]), ("", [hit[2] for hit in first]))
        shutil.move(self.notes / "index", self.folder / "index")
        (self.notes / "a.txt").unlink()
        self.write("below/b.txt", "the night\n")
        self.assertEqual(self.search(index=True), [("below/b.txt", 1, "the night")])
        other = write_checkpoint(self.folder / "other", tokenizer=True, seed=2)
        self.assert_one_error(run(*self.words(model=other, index=True)), 1, "--index: ", "was made by another model")
        with open(self.folder / "index/vectors-000000.safetensors", "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"!")
        self.assert_one_error(run(*self.words(index=True)), 1, "vectors-000000.safetensors", "damaged")
        # Tensors of other types and shapes than those of an index, in a whole file.
        tensors, files = {"vectors": ("F32", [1, 2], 8), "passages": ("I64", [1, 2], 16), "texts": ("U8", [0], 0), "probe": ("F32", [2], 8)}, [[["a", 1, 1], 1, 0, 1]]
        for name, tensor, listed in [("passages", ("F32", [1, 4], 16), files), ("vectors", ("I64", [1, 1], 8), files), ("texts", ("F32", [0], 0), files),
                                     ("probe", ("F32", [2, 1], 8), files), ("probe", tensors["probe"], [[1, 2, 3, 4]]), ("probe", tensors["probe"], [[["a", 1, 1], 1, -1, 1]])]:
            header, at = {"__metadata__": {"files": json.dumps(listed), "settings": "", "probe": ""}}, 0
            for key, (kind, shape, size) in {**tensors, name: tensor}.items():
                header[key] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
                at += size
            text = json.dumps(header).encode()
            (self.folder / "index/vectors-000000.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))
            self.assert_one_error(run(*self.words(index=True)), 1, "vectors-000000.safetensors", "do not fit together")

    def test_what_is_no_text_is_passed_over_in_a_folder(self):
        found = self.search()
        picture = self.write("0.png", b"\x89PNG\xff\0")
        table = self.write("9.jsonl", '{"loss": 1}\n')
        self.write("empty.txt", "")
        (self.notes / "loop").symlink_to("loop")
        result = run(*self.words("--json"))
        self.assertEqual((result.code, len(result.out.splitlines())), (0, len(found)))
        self.assertEqual(result.err, f"note: passed over 2 of 4 files; the first: invalid UTF-8 in {picture} at byte 0 (line 1)\n")
        self.assert_one_error(run(*self.words(documents=picture)), 1, f"invalid UTF-8 in {picture}")
        self.assert_one_error(run(*self.words(documents=table)), 1, f"{table}, line 1: expected an object with a 'document'")
        self.assert_one_error(run(*self.words(documents=self.folder / "none")), 1, "--documents: there is no ")
        self.assert_one_error(run(*self.words("--top_k", 0)), 2, "--top_k")

    def test_a_kill_and_an_interrupt_keep_what_is_done(self):
        """SIGINT ends with what is done in the index; a kill leaves an index that goes on."""
        self.write("long.txt", "\n\n".join("the " + "".join(word) for word in itertools.product("abcdefgh", repeat=5)))
        index = self.folder / "index"
        shard = index / "vectors-000000.safetensors"
        for sent, code in (signal.SIGKILL, -9), (signal.SIGINT, 130):
            before = shard.exists() and shard.stat().st_mtime_ns
            process = subprocess.Popen([PROGRAM, *map(str, self.words("--threads", 1, "--batch_size", 1, index=True))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            end = time.monotonic() + 60
            while (shard.exists() and shard.stat().st_mtime_ns) == before and time.monotonic() < end and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(sent)
            output, error = process.communicate()
            self.assertEqual((process.returncode, output), (code, ""), error)
        self.assertRegex(error, r"^stopped: \d+ passages remain to be embedded; the same command goes on\n$")
        left = int(error.split()[1])
        self.assertGreater(left, 0)
        self.assertLess(left, 8 ** 5)
        found = self.search("--top_k", 10 ** 5, index=True)
        self.assertEqual(len(found), 8 ** 5 + 4)
        self.assertEqual(len(set(found)), len(found))

    def mined(self, pairs, *words):
        table, out = self.folder / "pairs.jsonl", self.folder / "mined.jsonl"
        table.write_text("".join(json.dumps({"anchor": anchor, "positive": positive}) + "\n" for anchor, positive in pairs))
        done = run("data", "negatives", "--model", self.model, "--dataset", table, "--output", out, *words)
        self.assertEqual(done.code, 0, done)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertIn(f"{len(lines)} of {len(pairs)} pairs", done.out)
        self.assertEqual("left out" in done.err, len(lines) < len(pairs))
        return [(line.pop("anchor"), line.pop("positive"), list(line.values())) for line in lines]

    def test_hard_negatives(self):
        """As Sentence-Transformers' mine_hard_negatives() chooses them, from the scores of tzoo rank."""
        pairs = [("the light", "and the light"), ("the cat", "a cat"), ("the dog", "the dog was"), ("the light", "in the day"),
                 ("a cat", "the cat"), ("the earth", "a cat"), ("void", "the beginning")]
        scores, answers, documents = {}, {}, list(dict.fromkeys(positive for _, positive in pairs))
        for anchor, positive in pairs:
            words = [word for text in documents for word in ("--document", text)]
            ranked = map(json.loads, self.succeed("rank", "--model", self.model, "--query", anchor, *words).splitlines())
            scores[anchor] = {line["document"]: line["score"] for line in ranked}
            answers.setdefault(anchor, set()).add(positive)

        def expected(count, skipped=0, absolute=None, relative=None):
            for anchor, positive in pairs:
                own = min(scores[anchor][text] for text in answers[anchor])
                others = sorted((-score, text) for text, score in scores[anchor].items() if text not in answers[anchor]
                                and (absolute is None or score <= own - absolute) and (relative is None or score <= own - abs(own) * relative))
                chosen = [text for _, text in others][skipped:skipped + count]
                if len(chosen) == count:
                    yield anchor, positive, chosen
        cases = [((), (3,)), (("--num_negatives", 2, "--range_min", 1), (2, 1)), (("--num_negatives", 1, "--absolute_margin", 0.1), (1, 0, 0.1)),
                 (("--num_negatives", 1, "--relative_margin", 0.05, "--batch_size", 2), (1, 0, None, 0.05)), (("--num_negatives", 4), (4,))]
        sizes = set()
        for words, how in cases:
            with self.subTest(words):
                found = self.mined(pairs, *words)
                self.assertEqual(found, list(expected(*how)))
                sizes.add(len(found))
        self.assertEqual(max(sizes), len(pairs))
        self.assertLess(min(sizes), len(pairs))  # a margin leaves some out
        command = ["data", "negatives", "--model", self.model, "--output", self.folder / "none.jsonl", "--dataset"]
        self.assert_one_error(run(*command, self.folder / "pairs.jsonl", "--num_negatives", 9), 1, "no pair of ")
        self.assert_one_error(run(*command, self.write("scored.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n')), 1, "line 1: expected")
        self.assert_one_error(run(*command, self.write("negative.jsonl", '{"anchor": "a", "positive": "b", "negative": "c"}\n')), 1, "found negatives")
        self.assertFalse((self.folder / "none.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
