"""Names and numbers of weights that transformers takes beside those that it writes: an output projection of its own beside
tie_word_embeddings, whose other ties stay, in every way to compute; Nomic BERT under the names of its modules."""

import json
import pathlib
import random
import tempfile
import unittest

import torch
from cases.generator import Generator, run
from forward_parity import SHORT, difference, flags_of, hf, tzoo
from safetensors.torch import load_file, save_file, save_model
from test_bert import BertTest
from test_encoder_decoders import FAMILIES as ENCODER_DECODERS
from test_encoder_decoders import test_of as encoder_decoder_test
from test_encoders import MPNetTest, NomicBertTest
from test_roberta import RobertaTest
from test_t5 import T5Test


def with_own_projection(model, folder):
    """Saves the model with other numbers in its projection, and opens it as transformers does."""
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    head = model.get_output_embeddings()
    name = [name for name, weight in model.named_parameters(remove_duplicate=False) if weight is head.weight][-1]
    tensors[name] = head.weight.detach() + torch.randn(head.weight.shape, generator=torch.Generator().manual_seed(1)) * 0.3
    save_file(tensors, path, {"format": "pt"})
    return type(model).from_pretrained(folder, attn_implementation="eager").eval()


class OwnProjectionTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check_forward(self, model, head, inputs, directory):
        output = self.folder / "out.safetensors"
        done = tzoo("forward", "--model", str(directory), *flags_of(inputs), "--gradients", "--output", str(output))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(difference(model, head, inputs, load_file(output), hf.expected_tensors(model, head, inputs)), "")

    def random_model(self, suite, head):
        """A tied one with this head."""
        for seed in range(200):
            found, model, inputs = suite.random_model(seed)
            if found == head and model.config.tie_word_embeddings:
                return model, inputs
        self.fail(f"no {head}")

    def test_gradients_of_encoder_decoders(self):
        for name in ["m2m_100"] if SHORT else ENCODER_DECODERS:
            with self.subTest(name):
                model, inputs = self.random_model(encoder_decoder_test(name)(), "seq2seq-lm")
                opened = with_own_projection(model, self.folder / name)
                self.check_forward(opened, "seq2seq-lm", inputs, self.folder / name)

    def test_gradients_of_masked_language_models(self):
        """Their bias stays tied: it is one weight, not two."""
        for suite in (RobertaTest,) if SHORT else (BertTest, RobertaTest, MPNetTest, NomicBertTest):
            with self.subTest(suite.__name__):
                model, inputs = self.random_model(suite(), "masked-lm")
                directory, again = self.folder / suite.__name__, self.folder / (suite.__name__ + "-again")
                opened = with_own_projection(model, directory)
                self.check_forward(opened, "masked-lm", inputs, directory)
                run("export", "--model", directory, "--format", "huggingface", "--output", again, threads=False)
                back, report = type(model).from_pretrained(again, output_loading_info=True, attn_implementation="eager")
                self.assertEqual({key: list(names) for key, names in report.items() if names}, {})
                with torch.no_grad():
                    torch.testing.assert_close(hf.call(back.eval(), "masked-lm", inputs).logits, hf.call(opened, "masked-lm", inputs).logits)

    def test_ways_to_generate(self):
        names = ["bart"] if SHORT else ["bart", "m2m_100", "mt5"]  # positions learned, sinusoidal and in buckets
        for suite in (*map(encoder_decoder_test, names), *([] if SHORT else [T5Test])):
            with self.subTest(suite.__name__):
                model = suite().generator(0)
                model.config.eos_token_id = model.generation_config.eos_token_id = None
                model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id
                directory = self.folder / suite.__name__
                opened = with_own_projection(model, directory)
                generator = Generator(opened, suite().random_rows(opened, random.Random(0))[:2])
                generator.greedy(directory, "modules")
                generator.greedy(directory, "float32")
                generator.beams(directory, "float32")
                generator.script(directory, directory / "model.pt")
                generator.round_trip(directory, directory / "again")
                run("export", "--model", directory, "--format", "packed", "--weights", "float32", "--output", directory / "packed",
                    threads=False)
                self.assertEqual(json.loads(run("generate", "--model", directory / "packed", "--input_ids", json.dumps(generator.rows),
                                                "--max_new_tokens", "12", "--temperature", "0", "--json"))["ids"], generator.ids)

    def test_stacks_with_embeddings_of_their_own_are_refused_by_name(self):
        model, _ = self.random_model(encoder_decoder_test("bart")(), "seq2seq-lm")
        model.save_pretrained(self.folder)
        path = self.folder / "model.safetensors"
        tensors = load_file(path)
        tensors["model.encoder.embed_tokens.weight"] = tensors["model.shared.weight"] + 1
        for tied in (True, False):  # without the tie, transformers has an embedding for each stack
            model.config.tie_word_embeddings = tied
            model.config.save_pretrained(self.folder)
            if not tied:
                tensors["lm_head.weight"] = tensors["model.shared.weight"] * 2
            save_file(tensors, path, {"format": "pt"})
            done = tzoo("inspect", "--model", str(self.folder))
            self.assertEqual(done.returncode, 1)
            self.assertIn("model.encoder.embed_tokens.weight: differs from model.shared.weight; the zoo's model has one weight for both",
                          done.stderr)

    def test_nomic_bert_under_the_names_of_its_modules(self):
        for head in ["masked-lm"] if SHORT else NomicBertTest.HEADS:
            with self.subTest(head):
                _, model, inputs = next(found for found in map(NomicBertTest().random_model, range(50)) if found[0] == head)
                directory = self.folder / head
                model.save_pretrained(directory)
                save_model(model, str(directory / "model.safetensors"), {"format": "pt"})
                output = self.folder / "out.safetensors"
                done = tzoo("forward", "--model", str(directory), *flags_of(inputs), "--output", str(output),
                            *(["--gradients"] if "labels" in inputs else []))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(difference(model, head, inputs, load_file(output), hf.expected_tensors(model, head, inputs)), "")


if __name__ == "__main__":
    unittest.main()
