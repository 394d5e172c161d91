"""The texts of apps/quickstart.sh --chat: what is asked, that answers are right, and that the examination is of new questions."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

CHAT = pathlib.Path(__file__).resolve().parents[2] / "apps/chat"
WORDNET = os.environ.get("WNSEARCHDIR") or "/usr/share/wordnet"


def awk(script, *files, **values):
    words = [f"{name}={value}" for name, value in values.items()]
    command = ["awk", *(part for word in words for part in ("-v", word)), "-f", str(CHAT / script), *map(str, files)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class ChatData(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "definitions.tsv").write_text(awk("definitions.awk", folder=WORDNET, count=300))
        awk("conversations.awk", cls.folder / "definitions.tsv", folder=cls.folder, count=3000, words=200)

    def test_definitions_are_those_of_wordnet(self):
        found = dict(line.split("\t") for line in (self.folder / "definitions.tsv").read_text().splitlines())
        self.assertEqual(len(found), 300)
        self.assertEqual(found["person"], "a human being")
        self.assertEqual(found["eye"], "the organ of sight")

    def check(self, question, answer):
        if sums := re.fullmatch(r"What is (\d+) ([+-]) (\d+)\?", question):
            a, sign, b = int(sums[1]), sums[2], int(sums[3])
            self.assertEqual(answer, f"{a} {sign} {b} = {a + b if sign == '+' else a - b}.")
        elif order := re.fullmatch(r"Put these numbers in order: ([\d ]+)", question):
            self.assertEqual(answer.split(), sorted(order[1].split()))
        elif order := re.fullmatch(r"Say these numbers backwards: ([\d ]+)", question):
            self.assertEqual(answer.split(), order[1].split()[::-1])
        elif word := re.fullmatch(r"How do you spell (\w+)\?", question):
            self.assertEqual(answer, " ".join(word[1]))
        else:
            return False
        return True

    def test_answers_are_right_and_wrong_ones_are_wrong(self):
        checked = 0
        for chat in lines(self.folder / "chats.jsonl"):
            turns = chat["messages"]
            self.assertEqual([turn["role"] for turn in turns], ["user", "assistant"] * (len(turns) // 2))
            checked += sum(self.check(turns[i]["content"], turns[i + 1]["content"]) for i in range(0, len(turns), 2))
        self.assertGreater(checked, 2000)
        for pair in lines(self.folder / "preferences.jsonl"):
            question, chosen, rejected = (pair[key][0]["content"] for key in ("prompt", "chosen", "rejected"))
            self.check(question, chosen)
            self.assertNotEqual(chosen, rejected)

    def test_the_examination_has_new_questions(self):
        taught = {turn["content"] for chat in lines(self.folder / "chats.jsonl") for turn in chat["messages"][::2]}
        taught |= {pair["prompt"][0]["content"] for pair in lines(self.folder / "preferences.jsonl")}
        for kind in ("arithmetic", "order", "spelling", "books", "words"):
            with self.subTest(kind):
                asked = lines(self.folder / f"test-{kind}.jsonl")
                self.assertGreaterEqual(len(asked), 10)
                self.assertFalse(taught & {row["question"] for row in asked})
                for row in asked:
                    self.check(row["question"], row["answer"])

    def test_documents_are_chapters_and_meanings(self):
        bible = self.folder / "kjv.txt"
        bible.write_text('Genesis 1\n\nIn the beginning.\nAnd "God" said.\n\nGenesis 2\n\nThus.\n\n1 Samuel 1\n\nNow.\n')
        words = self.folder / "two.tsv"
        words.write_text("bread\tfood made from dough\n")
        texts = [json.loads(line)["text"] for line in awk("texts.awk", bible, words).splitlines()]
        self.assertEqual(texts, ['Genesis 1\n\nIn the beginning.\nAnd "God" said.\n', "Genesis 2\n\nThus.\n", "1 Samuel 1\n\nNow.",
                                 "bread: food made from dough."])

    def test_a_report_becomes_a_page(self):
        (self.folder / "a.png").write_bytes(b"\x89PNG")
        (self.folder / "report.md").write_text("# A <b>\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n> Hi & you\n\n![Loss](a.png)\n")
        page = awk("page.awk", self.folder / "report.md", folder=self.folder)
        for part in ("<h1>A &lt;b&gt;</h1>", "<tr><th> x <th> y ", "<tr><td> 1 <td> 2 ", "Hi &amp; you", "data:image/png;base64,iVBORw=="):
            self.assertIn(part, page)


if __name__ == "__main__":
    unittest.main()
