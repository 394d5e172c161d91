"""What tzoo export writes, as PyTorch and transformers see it: nothing here loads a line of ours."""

import json
import os
import subprocess
import tempfile
import unittest

import torch
import transformers
from exported_cases import ExportedCases, export
from forward_parity import hf
from transformers import GPT2Config, GPT2LMHeadModel

VOCABULARY = 61


def tzoo(*words):
    done = subprocess.run([os.environ["TZOO"], *words], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"tzoo {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def make_gpt2(directory, dtype=torch.float32, **changes):
    """A tiny GPT-2 whose weights are large enough that its next tokens depend on all before."""
    torch.manual_seed(11)
    config = dict(vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=40, initializer_range=0.3,
                  bos_token_id=None, eos_token_id=None, pad_token_id=None)
    model = GPT2LMHeadModel(GPT2Config(**{**config, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # biases of zero and norms of one would hide a fault
                parameter.add_(0.2 * torch.randn_like(parameter))
    model = model.to(dtype)
    model.save_pretrained(directory)
    return model


def some_ids(batch, length):
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(batch * 100 + length))


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.target = os.path.join(folder.name, "model"), os.path.join(folder.name, "exported")

    def script(self, *words):
        tzoo("export", "--model", self.source, "--format", "torchscript", "--output", self.target, *words)
        return torch.jit.load(self.target)

    def assert_close(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        error = ((found - expected).abs().max() / expected.abs().max()).item()
        self.assertLessEqual(error, 1e-5)


class TorchScriptCases(ExportedCases, unittest.TestCase):
    TARGET = "model.pt"

    def exported(self, model):
        model.save_pretrained(self.source)
        done = export(self.source, self.target, "--verify")
        self.assertEqual(done.returncode, 0, done.stderr)
        script = torch.jit.load(self.target)

        def forward(input_ids, attention_mask, **decoder):
            # Token types are the third input of a model that has them.
            types = [torch.zeros_like(input_ids)] if model.config.model_type == "bert" else []
            found = script(input_ids, attention_mask, *types, *decoder.values())
            return found if isinstance(found, tuple) else (found,)

        return forward

    test_caches_give_the_greedy_ids = None  # its method generate() is tested below


class TorchScriptTest(ExportTest):
    @torch.no_grad()
    def assert_same_logits(self, model):
        script = self.script()
        for shape in ((1, 1), (2, 17), (3, 40)):
            ids = some_ids(*shape)
            self.assert_close(script(ids), model(ids).logits)
        ids, mask = some_ids(3, 12), torch.ones(3, 12, dtype=torch.long)
        mask[1, 8:] = 0  # on the right
        mask[2, :5] = 0  # on the left
        found, expected = script(ids, mask), model(ids, attention_mask=mask).logits
        # For a query that sees no key transformers gives the mean of all values, ours zeros; no result depends on it.
        self.assert_close(found[mask.bool()], expected[mask.bool()])

    def test_logits_are_those_of_transformers(self):
        self.assert_same_logits(make_gpt2(self.source))

    def test_logits_of_an_untied_gelu_model_are_those_of_transformers(self):
        self.assert_same_logits(make_gpt2(self.source, tie_word_embeddings=False, activation_function="gelu", n_inner=50))

    @torch.no_grad()
    def test_greedy_ids_are_those_of_transformers_and_of_tzoo(self):
        model = make_gpt2(self.source)
        script, ids = self.script(), some_ids(2, 9)
        expected = model.generate(ids, max_new_tokens=20, do_sample=False)[:, 9:]
        self.assertGreater(len(set(expected[0].tolist())), 2)
        for temperature in (0, 0.0):
            self.assertEqual(script.generate(ids, 20, temperature, 0).tolist(), expected.tolist())
        self.assertEqual(script.generate(ids, max_new_tokens=20, temperature=0.0).tolist(), expected.tolist())
        said = json.loads(tzoo("generate", "--model", self.source, "--input_ids", json.dumps(ids.tolist()),
                               "--max_new_tokens", "20", "--temperature", "0", "--json"))
        self.assertEqual(said["ids"], expected.tolist())

    @torch.no_grad()
    def test_a_context_that_is_full_goes_on_as_in_tzoo(self):
        make_gpt2(self.source)
        ids = some_ids(1, 30)
        said = json.loads(tzoo("generate", "--model", self.source, "--input_ids", json.dumps(ids.tolist()),
                               "--max_new_tokens", "70", "--temperature", "0", "--json"))
        self.assertEqual(self.script().generate(ids, 70, 0, 0).tolist(), said["ids"])

    @torch.no_grad()
    def test_an_end_token_ends_a_row_as_in_transformers(self):
        model = make_gpt2(self.source)
        ids = some_ids(2, 9)
        free = model.generate(ids, max_new_tokens=20, do_sample=False)[:, 9:]
        # An id that ends the first row at once and that the generation config alone names.
        model.generation_config.eos_token_id = [60, free[0, 2].item()]
        model.generation_config.pad_token_id = 7
        model.generation_config.save_pretrained(self.source)
        expected = model.generate(ids, max_new_tokens=20, do_sample=False)[:, 9:]
        self.assertEqual(expected[0, -1], 7)
        self.assertEqual(self.script().generate(ids, 20, 0, 0).tolist(), expected.tolist())

    @torch.no_grad()
    def test_samples_stay_among_the_top_k_and_follow_the_seed(self):
        model = make_gpt2(self.source)
        script, ids = self.script(), some_ids(1, 9).expand(200, 9)
        best = model(ids[:1]).logits[0, -1].topk(4).indices.tolist()
        torch.manual_seed(1)
        first = script.generate(ids, 1, 1.5, 4)
        self.assertEqual(set(first.flatten().tolist()), set(best))
        torch.manual_seed(1)
        self.assertTrue(torch.equal(script.generate(ids, 1, 1.5, 4), first))

    @torch.no_grad()
    def test_bfloat16_holds_the_converted_weights(self):
        model = make_gpt2(self.source).bfloat16()
        script = self.script("--dtype", "bfloat16")
        self.assertEqual({p.dtype for p in script.parameters()}, {torch.bfloat16})
        table = dict(script.named_parameters())["embeddings.token.weight"]
        self.assertTrue(torch.equal(table, model.transformer.wte.weight))
        found, expected = script(some_ids(2, 17)).float(), model(some_ids(2, 17)).logits.float()
        self.assertLess(((found - expected).abs().max() / expected.abs().max()).item(), 0.05)

    def test_the_file_says_what_it_is(self):
        make_gpt2(self.source)
        script = self.script()
        config = json.loads(script.config)
        self.assertEqual((config["model_type"], config["n_layer"], config["vocab_size"]), ("gpt2", 3, VOCABULARY))
        self.assertEqual((script.format_version, script.eos_ids), (1, []))
        self.assertFalse(script.training)

    def test_gradients_flow_to_the_weights(self):
        make_gpt2(self.source)
        script = self.script()
        for parameter in script.parameters():
            parameter.requires_grad_()
        script(some_ids(2, 5)).sum().backward()
        self.assertTrue(all(p.grad is not None for p in script.parameters()))


class HeadsTest(ExportTest):
    """Every family with every head, at three shapes, padded on both sides."""

    ENCODER = dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=40,
                   vocab_size=VOCABULARY, max_position_embeddings=44)
    HEADS = {"Model": "base", "ForMaskedLM": "masked-lm", "ForNextSentencePrediction": "next-sentence",
             "ForSequenceClassification": "sequence-classification", "ForTokenClassification": "token-classification",
             "ForQuestionAnswering": "question-answering"}

    def outputs_of(self, model, head, inputs):
        output = hf.call(model, head, inputs)
        names = {"base": ["last_hidden_state"], hf.QUESTION_ANSWERING: ["start_logits", "end_logits"]}
        return [output[name] for name in names.get(head, ["logits"])]

    @torch.no_grad()
    def check(self, cls, head, config):
        model = hf.random_model(cls, config, 21)
        model.save_pretrained(self.source)
        script = self.script("--verify")
        # Padding that fills a window of 4 on each side leaves transformers no defined answer.
        left, right = (3, 37) if hasattr(config, "local_attention") else (11, 30)
        for batch, length in ((1, 1), (2, 17), (3, 40)):
            ids, mask = some_ids(batch, length), torch.ones(batch, length, dtype=torch.long)
            if batch == 3:
                mask[1, right:] = 0
                mask[2, :left] = 0
            if config.pad_token_id is not None:
                ids = ids.masked_fill(ids == config.pad_token_id, 9).masked_fill(mask == 0, config.pad_token_id)
            found = script(ids, mask)
            expected = self.outputs_of(model, head, {"input_ids": ids, "attention_mask": mask})
            found = list(found) if isinstance(found, tuple) else [found]
            self.assertEqual(len(found), len(expected))
            for ours, theirs in zip(found, expected):
                mine = hf.without_hidden_rows(model, "logits", ours, mask)
                self.assert_close(mine, hf.without_hidden_rows(model, "logits", theirs, mask))

    def check_family(self, name, **changes):
        config = getattr(transformers, name + "Config")
        for ending, head in self.HEADS.items():
            cls = getattr(transformers, name + ending, None)
            if cls is None:
                continue
            for tied in (True, False) if head == "masked-lm" else (True,):
                labels = 2 if head == "question-answering" else 3
                with self.subTest(name=name, head=head, tied=tied):
                    self.check(cls, head, config(**changes, num_labels=labels, tie_word_embeddings=tied))

    def test_bert(self):
        self.check_family("Bert", **self.ENCODER, hidden_act="gelu_new")

    def test_roberta(self):
        self.check_family("Roberta", **self.ENCODER, hidden_act="relu")

    def test_albert(self):
        self.check_family("Albert", **self.ENCODER, embedding_size=12)

    def test_electra(self):
        self.check_family("Electra", **self.ENCODER, embedding_size=12)
        self.check(transformers.ElectraForPreTraining, "replaced-tokens", transformers.ElectraConfig(**self.ENCODER))

    def test_mpnet(self):
        self.check_family("MPNet", **self.ENCODER)

    def test_deberta(self):
        self.check_family("DebertaV2", **self.ENCODER, relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm",
                          position_biased_input=False, pos_att_type="p2c|c2p", position_buckets=8)

    def test_modernbert(self):
        for pooling in ("cls", "mean"):
            self.check_family("ModernBert", **self.ENCODER, local_attention=8, classifier_pooling=pooling, pad_token_id=5,
                              norm_bias=pooling == "mean")

    def test_distilbert(self):
        self.check_family("DistilBert", n_layers=2, n_heads=4, dim=32, hidden_dim=40, vocab_size=VOCABULARY,
                          max_position_embeddings=44)

    def test_gpt2(self):
        sizes = dict(n_layer=2, n_head=4, n_embd=32, vocab_size=VOCABULARY, n_positions=44, bos_token_id=None,
                     eos_token_id=None)
        self.check(transformers.GPT2Model, "base", GPT2Config(**sizes))
        self.check(transformers.GPT2ForSequenceClassification, "sequence-classification",
                   GPT2Config(**sizes, num_labels=3, pad_token_id=5))

    @torch.no_grad()
    def test_token_types_come_behind_the_mask(self):
        model = hf.random_model(transformers.BertModel, transformers.BertConfig(**self.ENCODER), 22)
        model.save_pretrained(self.source)
        ids, mask = some_ids(2, 9), torch.ones(2, 9, dtype=torch.long)
        types = ids % 2
        self.assert_close(self.script()(ids, mask, types), model(ids, mask, types).last_hidden_state)

    @torch.no_grad()
    def test_bfloat16(self):
        config = transformers.BertConfig(**self.ENCODER, num_labels=3)
        model = hf.random_model(transformers.BertForTokenClassification, config, 23)
        model.save_pretrained(self.source)
        script, ids = self.script("--dtype", "bfloat16", "--verify"), some_ids(2, 17)
        self.assertEqual({p.dtype for p in script.parameters()}, {torch.bfloat16})
        found, expected = script(ids).float(), model(ids).logits
        self.assertLess(((found - expected).abs().max() / expected.abs().max()).item(), 0.1)


class HuggingFaceTest(ExportTest):
    def assert_same_model(self, dtype, **changes):
        model = make_gpt2(self.source, dtype=dtype, **changes)
        tzoo("export", "--model", self.source, "--format", "huggingface", "--output", self.target)
        opened, report = GPT2LMHeadModel.from_pretrained(self.target, dtype="auto", output_loading_info=True)
        self.assertEqual({key: list(names) for key, names in report.items() if names}, {})
        expected, found = model.state_dict(), opened.eval().state_dict()
        self.assertEqual(list(found), list(expected))
        for name, tensor in expected.items():
            self.assertEqual(found[name].dtype, dtype)
            self.assertTrue(torch.equal(found[name].view(torch.uint8), tensor.view(torch.uint8)), name)
        with torch.no_grad():
            ids = some_ids(2, 13)
            self.assertTrue(torch.equal(opened(ids).logits, model(ids).logits))

    def test_transformers_opens_the_same_model(self):
        self.assert_same_model(torch.float32)

    def test_transformers_opens_the_same_untied_bfloat16_model(self):
        self.assert_same_model(torch.bfloat16, tie_word_embeddings=False, activation_function="relu")


if __name__ == "__main__":
    unittest.main()
