"""tzoo rank beside transformers: a cross-encoder's logits after its activation, an embedding model's similarities."""

import json
import pathlib
import tempfile
import unittest

import torch
import transformers

from text_models import TEXTS, lines, shaken, sizes, tzoo, wordpiece

QUERY = "let there be light"


class RankTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "model"
        torch.manual_seed(2)
        self.tokenizer = wordpiece()
        self.documents = self.directory.parent / "documents.txt"
        self.documents.write_text("".join(text.strip() + "\n" for text in TEXTS))

    def save(self, model_class, **settings):
        model = shaken(model_class(transformers.BertConfig(**sizes(self.tokenizer), max_position_embeddings=64, **settings)))
        model.save_pretrained(self.directory)
        self.tokenizer.save_pretrained(self.directory)
        return model

    def write(self, name, content):
        self.directory.joinpath(name).parent.mkdir(exist_ok=True)
        self.directory.joinpath(name).write_text(json.dumps(content))

    def change(self, name, **more):
        file = self.directory / name
        self.write(name, (json.loads(file.read_text()) if file.exists() else {}) | more)

    def check(self, expected, *words, documents=None):
        """Scores by the number of the document."""
        found = lines("rank", "--model", str(self.directory), "--query", QUERY, "--documents", documents or str(self.documents), *words)
        order = sorted(range(len(TEXTS)), key=lambda i: -expected[i])
        self.assertEqual([line["index"] for line in found], order[:len(found)])
        for line in found:
            self.assertAlmostEqual(line["score"], expected[line["index"]].item(), delta=1e-5 * max(1, expected.abs().max().item()))
        return found

    def refused(self, said, *words):
        done = tzoo("rank", "--model", str(self.directory), "--query", QUERY, "--documents", str(self.documents), *words)
        self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
        self.assertIn(said, done.stderr)

    def test_cross_encoder(self):
        model = self.save(transformers.BertForSequenceClassification, num_labels=1)
        with torch.no_grad():
            logits, prompted, other = (torch.stack([model(**self.tokenizer(prompt + QUERY, text.strip(), truncation=True, max_length=64, return_tensors="pt"))
                                                    .logits[0, 0] for text in TEXTS]) for prompt in ("", "god said: ", "earth "))
        found = self.check(logits.sigmoid(), "--batch_size", "2")
        self.assertEqual([(line["line"], line["document"]) for line in found], [(line["index"] + 1, TEXTS[line["index"]].strip()) for line in found])
        self.assertEqual(len(self.check(logits.sigmoid(), "--top_k", "2")), 2)
        # The activation, where versions 2, 4 and 6 of Sentence-Transformers write it.
        identity, sigmoid = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"
        self.change("config.json", sbert_ce_default_activation_function=identity)
        self.check(logits)
        self.change("config.json", sbert_ce_default_activation_function=None, sentence_transformers={"activation_fn": identity, "version": "4.0.1"})
        self.check(logits)
        self.write("config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": sigmoid})
        self.check(logits.sigmoid())
        self.write("config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Tanh"})
        self.refused("'activation_fn' is 'torch.nn.modules.activation.Tanh'; expected Sigmoid or Identity")
        self.write("config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": identity, "default_prompt_name": "query",
                                                         "prompts": {"query": "god said: ", "other": "earth "}})
        self.check(prompted)
        self.check(other, "--query_prompt_name", "other")

    def test_segments_are_those_of_the_tokenizers_class(self):
        """transformers gives a model token_type_ids only if model_input_names has them, by the file or the class."""
        for names in (None, ["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]):
            self.tokenizer = wordpiece()
            self.save(transformers.BertForSequenceClassification, num_labels=1)
            config = json.loads((self.directory / "tokenizer_config.json").read_text())
            config.pop("model_input_names", None)
            self.write("tokenizer_config.json", config | ({"model_input_names": names} if names else {}))
            reference = transformers.AutoTokenizer.from_pretrained(self.directory)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(self.directory).eval()
            with torch.no_grad():
                logits = torch.stack([model(**reference(QUERY, text.strip(), truncation=True, max_length=64, return_tensors="pt")).logits[0, 0]
                                      for text in TEXTS])
            self.check(logits.sigmoid())

    def test_embedding_model(self):
        model = self.save(transformers.BertModel)
        def vectors(texts, prompt=""):
            with torch.no_grad():
                return torch.stack([model(**self.tokenizer(prompt + text.strip(), truncation=True, max_length=64, return_tensors="pt"))
                                    .last_hidden_state[0].mean(0) for text in texts])
        cosines = torch.nn.functional.cosine_similarity
        self.check(cosines(vectors([QUERY]), vectors(TEXTS)))  # a plain checkpoint
        self.write("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
        self.write("1_Pooling/config.json", {"embedding_dimension": 16, "pooling_mode": "mean"})
        settings = {"prompts": {"query": "god said: ", "passage": "earth "}, "default_prompt_name": "query", "similarity_fn_name": None}
        self.write("config_sentence_transformers.json", settings)
        query, documents = vectors([QUERY], "god said: "), vectors(TEXTS, "earth ")
        self.check(cosines(query, documents))
        self.check(cosines(vectors([QUERY], "earth "), vectors(TEXTS, "god said: ")), "--query_prompt_name", "passage", "--document_prompt_name", "query")
        self.write("config_sentence_transformers.json", settings | {"similarity_fn_name": "dot"})
        self.check((documents @ query[0]))
        self.refused("there is no prompt 'other'", "--query_prompt_name", "other")
        self.write("config_sentence_transformers.json", settings | {"similarity_fn_name": "euclidean"})
        self.refused("'similarity_fn_name' is 'euclidean'")

    def test_documents(self):
        model = self.save(transformers.BertModel)
        del model
        expected = [line["score"] for line in lines("rank", "--model", str(self.directory), "--query", QUERY, "--documents", str(self.documents))]
        for name, text in [("d.jsonl", "".join(json.dumps({"document": text.strip(), "id": 3}) + "\n" for text in TEXTS)),
                           ("e.jsonl", "".join(json.dumps({"text": text.strip()}) + "\n" for text in TEXTS)),
                           ("d.tsv", "document\n" + "".join(text.strip() + "\n" for text in TEXTS))]:
            file = self.directory.parent / name
            file.write_text(text)
            found = lines("rank", "--model", str(self.directory), "--query", QUERY, "--documents", str(file))
            self.assertEqual([line["score"] for line in found], expected)
            self.assertEqual([line["line"] - line["index"] for line in found], [2 if name == "d.tsv" else 1] * len(TEXTS))
        words = [word for text in TEXTS for word in ("--document", text.strip())]
        found = lines("rank", "--model", str(self.directory), "--query", QUERY, *words)
        self.assertEqual([(line["score"], "line" in line) for line in found], [(score, False) for score in expected])
        self.documents.write_text("a\n\nb\n")
        self.refused("line 2: the text is empty")
        self.refused("--documents: cannot read", "--documents", str(self.directory / "none"))

    def test_other_models_are_refused(self):
        self.save(transformers.BertForSequenceClassification, num_labels=3)
        self.refused("expected a cross-encoder, a regression with one label; it has 3 labels")
        self.save(transformers.BertForSequenceClassification, num_labels=1)
        self.refused("there is no prompt 'query'; the model has none", "--query_prompt_name", "query")
        self.refused("a cross-encoder has no prompts of documents", "--document_prompt_name", "query")


if __name__ == "__main__":
    unittest.main()
