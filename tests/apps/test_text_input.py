"""Texts of a verb from standard input: what a line holds, and where one is at fault."""

import json
import pathlib
import tempfile
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import CommandTest, run


class TextInput(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = write_checkpoint(f"{folder.name}/model", tokenizer=True)

    def embed(self, text):
        result = run("embed", "--model", self.model, stdin=text.encode(errors="surrogateescape"))
        return result, [json.loads(line)["text"] for line in result.out.splitlines()]

    def test_the_lines_before_a_fault_are_answered(self):
        for line, fault in ("", "the text is empty"), ("b\udcff", "not UTF-8 at byte 1"):
            result, texts = self.embed(f"the cat\na dog\n{line}\nthe end\n")
            self.assertEqual((result.code, texts), (1, ["the cat", "a dog"]))
            self.assertEqual(result.err, f"error: standard input, line 3: {fault}\n")

    def test_lines_of_windows_are_the_same_texts(self):
        """As in tables: without a byte order mark, and without the carriage return of a line end."""
        plain = run("embed", "--model", self.model, stdin=b"the cat\na dog\n")
        for text in "\ufeffthe cat\r\na dog\r\n", "\ufeffthe cat\na dog", "the cat\r\na dog\r\n":
            self.assertEqual(run("embed", "--model", self.model, stdin=text.encode()), plain)
        self.assertEqual(self.embed("the cat\r\n\r\n")[0].err, "error: standard input, line 2: the text is empty\n")

    def test_texts_that_are_cut_are_counted(self):
        """Of letters and spaces, each a token."""
        for texts, note in ((["cat"], ""), (["cats"], "1 text is"), (["cat", "the cat", "a dog"], "2 of 3 texts are")):
            words = [word for text in texts for word in ("--text", text)]
            result = run("embed", "--model", self.model, "--max_length", 3, *words)
            self.assertEqual(result.err, f"note: {note} longer than the 3 tokens that are read, and cut\n" if note else "")

    def test_texts_come_from_flags_or_from_a_file(self):
        result = run("embed", "--model", self.model, "--text", "the cat", "--input", "/nowhere")
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("--text and --input: give only one of them", result.err)

    def test_a_table_may_have_more_than_the_verb_reads(self):
        """Of any name, and empty lines at its end."""
        plain = run("embed", "--model", self.model, "--text", "the cat", "--text", "a dog").out
        for name, text in [("t.jsonl", '{"text": "the cat", "texts": 1}\n{"text": "a dog", "label": 2}\n\n'),
                           ("t.tsv", "texts\ttext\tlabels\n1\tthe cat\ta\n2\ta dog\tb\n")]:
            path = pathlib.Path(self.model).with_name(name)
            path.write_text(text)
            result = run("embed", "--model", self.model, "--input", path)
            self.assertEqual((result.code, result.out), (0, plain), result.err)
            self.assertIn("which this command does not read", result.err)
        path.write_text("sentence\tlabel\nthe cat\ta\n")
        result = run("embed", "--model", self.model, "--input", path)
        self.assert_one_error(result, 1, "looks like the names of columns, but text are not all there")
        self.assertNotIn("--columns", result.err)

    def test_a_table_with_commas_may_have_line_breaks_in_its_fields(self):
        path = pathlib.Path(self.model).with_name("t.csv")
        path.write_text('label,text\r\na,"the\ncat"\r\n"b,c",a dog\r\n', newline="")
        plain = run("embed", "--model", self.model, "--text", "the\ncat", "--text", "a dog")
        result = run("embed", "--model", self.model, "--input", path)
        self.assertEqual((result.code, result.out), (plain.code, plain.out), result.err)

    def test_an_input_without_texts_is_no_silence(self):
        result, texts = self.embed("")
        self.assertEqual((result.code, texts, result.err), (0, [], "note: standard input holds no texts\n"))
        self.assertEqual(self.embed("the cat\n")[0].err, "")


if __name__ == "__main__":
    unittest.main()
