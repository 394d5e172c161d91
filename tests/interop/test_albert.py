"""tzoo forward and export beside transformers: random ALBERTs with every head."""

import copy
import os
import tempfile
import unittest

import torch
import transformers
from forward_parity import ForwardParity, hf, tzoo
from transformers import AlbertConfig


class AlbertTest(ForwardParity, unittest.TestCase):
    HEADS = {
        "base": transformers.AlbertModel,
        "masked-lm": transformers.AlbertForMaskedLM,
        "sequence-classification": transformers.AlbertForSequenceClassification,
        "token-classification": transformers.AlbertForTokenClassification,
        "question-answering": transformers.AlbertForQuestionAnswering,
        "pretraining": transformers.AlbertForPreTraining,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 3, 4])
        labels = 2 if head in ("question-answering", "pretraining") else draw.choice([1, 2, 3, 7])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        return AlbertConfig(
            num_hidden_layers=draw.choice([1, 2, 3, 5]), num_attention_heads=heads,
            hidden_size=heads * draw.choice([4, 5, 8, 16]), intermediate_size=draw.choice([7, 24, 33]),
            embedding_size=draw.choice([4, 9, 16]), vocab_size=draw.randint(6, 90),
            max_position_embeddings=draw.randint(9, 30), type_vocab_size=draw.choice([1, 2, 3]),
            hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
            layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]), tie_word_embeddings=draw.random() < 0.6,
            pad_token_id=draw.choice([0, 0, 3, None]), bos_token_id=None, eos_token_id=None, num_labels=labels,
            problem_type=problem if head == "sequence-classification" else None,
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)  # must not act outside of training


    def test_rounding_does_not_fail_the_verification(self):
        """Large scores of attention make float32 round by more than the 1e-5 that a file may be off."""
        head, model, inputs = self.random_model(130)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "query" in name or "key" in name:
                    weight.mul_(4)
            single = hf.call(model, head, inputs)["start_logits"]
            double = hf.call(copy.deepcopy(model).double(), head, inputs)["start_logits"]
        self.assertGreater((single - double).abs().max() / double.abs().max(), 5e-5)
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            done = tzoo("export", "--model", directory, "--output", os.path.join(directory, "model.pt"), "--verify")
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
