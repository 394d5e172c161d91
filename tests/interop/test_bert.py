"""tzoo forward and export beside transformers: random BERTs with every head."""

import os
import tempfile
import unittest

import torch
import transformers
from forward_parity import ForwardParity, hf
from safetensors.torch import load_file, save_file
from transformers import BertConfig


class BertTest(ForwardParity, unittest.TestCase):
    HEADS = {
        "base": transformers.BertModel,
        "masked-lm": transformers.BertForMaskedLM,
        "next-sentence": transformers.BertForNextSentencePrediction,
        "sequence-classification": transformers.BertForSequenceClassification,
        "token-classification": transformers.BertForTokenClassification,
        "question-answering": transformers.BertForQuestionAnswering,
        "pretraining": transformers.BertForPreTraining,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 3, 4])
        labels = 2 if head == "question-answering" else draw.choice([1, 2, 3, 7])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        return BertConfig(
            num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
            hidden_size=heads * draw.choice([4, 5, 8, 16]), intermediate_size=draw.choice([7, 24, 33]),
            vocab_size=draw.randint(6, 90), max_position_embeddings=draw.randint(9, 30),
            type_vocab_size=draw.choice([1, 2, 3]), hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
            layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]), tie_word_embeddings=draw.random() < 0.6,
            pad_token_id=draw.choice([0, 0, 3, None]), num_labels=labels,
            problem_type=problem if head == "sequence-classification" else None,
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)  # must not act outside of training

    def save(self, model, head, directory, seed):
        if head == "masked-lm" and model.config.tie_word_embeddings:
            # As in the published checkpoints: another head beside it, copies of the tied weights, a buffer, old names.
            whole = transformers.BertForPreTraining(model.config)
            whole.load_state_dict(model.state_dict(), strict=False)
            whole.save_pretrained(directory)
            path = os.path.join(directory, "model.safetensors")
            tensors = load_file(path)
            tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
            tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
            tensors["bert.embeddings.position_ids"] = torch.arange(model.config.max_position_embeddings)[None]
            old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
            for name in list(tensors):
                for ending, older in old.items():
                    if name.endswith(ending):
                        tensors[name.replace(ending, older)] = tensors.pop(name)
            save_file(tensors, path, {"format": "pt"})
            return ["--head", "masked-lm"]
        model.save_pretrained(directory)
        return []

    def test_faults(self):
        sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 4, "intermediate_size": 6,
                 "vocab_size": 9, "max_position_embeddings": 5, "type_vocab_size": 2}
        ids = ["--input_ids", "[[1, 2, 3], [0, 1, 2]]"]

        def faults_of(cls, cases, **config):
            with tempfile.TemporaryDirectory() as directory:
                hf.random_model(cls, BertConfig(**sizes, **config), 1).save_pretrained(directory)
                self.check_faults(directory, [([*ids, *words], code, said) for words, code, said in cases])

        faults_of(transformers.BertForSequenceClassification, [
            (["--labels", "[0, 3]"], 2, ["--labels", "0 to 2", "got 3"]),
            (["--labels", "[0]"], 2, ["--labels", "[2]", "got [1]"]),
            (["--labels", "[0, 1.5]"], 2, ["--labels", "1.5"]),
            (["--labels", "[[0, 1], [1, 1]]"], 2, ["--labels", "[2, 3]", "got [2, 2]"]),
            (["--labels", "0"], 2, ["--labels"]),
            (["--token_type_ids", "[[0, 0, 2], [0, 1, 1]]"], 2, ["--token_type_ids", "0 to 1", "got 2"]),
            (["--token_type_ids", "[[0, 0]]"], 2, ["--token_type_ids", "[2, 3]", "got [1, 2]"]),
            (["--input_ids", "[[1, 2, 3, 4, 5, 6]]"], 1, ["6 tokens", "5 positions"]),
            (["--head", "masked-lm"], 1, ["missing", "cls.predictions.transform.dense.weight"]),
            (["--head", "causal-lm"], 1, ["bert has no causal-lm head", "masked-lm"]),
        ], num_labels=3)
        faults_of(transformers.BertForSequenceClassification, [
            (["--labels", "[0.5, \"a\"]"], 2, ["--labels", "\"a\""]),
        ], num_labels=1)
        faults_of(transformers.BertModel, [
            (["--labels", "[0, 1]"], 2, ["--labels", "base"]),
        ])
        faults_of(transformers.BertForNextSentencePrediction, [
            (["--labels", "[0, 2]"], 2, ["--labels", "0 to 1", "got 2"]),
        ])
        faults_of(transformers.BertForQuestionAnswering, [
            (["--labels", "[[0, 1, 2], [1, 1, 1]]"], 2, ["--labels", "[2, 2]", "got [2, 3]"]),
        ])


if __name__ == "__main__":
    unittest.main()
