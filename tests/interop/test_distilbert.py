"""tzoo forward and export beside transformers: random DistilBERTs with every head."""

import tempfile
import unittest

import transformers
from forward_parity import ForwardParity
from transformers import DistilBertConfig


class DistilBertTest(ForwardParity, unittest.TestCase):
    HEADS = {
        "base": transformers.DistilBertModel,
        "masked-lm": transformers.DistilBertForMaskedLM,
        "sequence-classification": transformers.DistilBertForSequenceClassification,
        "token-classification": transformers.DistilBertForTokenClassification,
        "question-answering": transformers.DistilBertForQuestionAnswering,
    }

    @staticmethod
    def random_config(draw, head):
        heads = draw.choice([1, 2, 3, 4])
        labels = 2 if head == "question-answering" else draw.choice([1, 2, 3, 7])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        return DistilBertConfig(
            n_layers=draw.choice([1, 2, 3]), n_heads=heads, dim=heads * draw.choice([4, 5, 8, 16]),
            hidden_dim=draw.choice([7, 24, 33]), vocab_size=draw.randint(6, 90),
            max_position_embeddings=draw.randint(9, 30), activation=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
            sinusoidal_pos_embds=draw.random() < 0.3, tie_word_embeddings=draw.random() < 0.6,
            pad_token_id=draw.choice([0, 0, 3, None]), num_labels=labels,
            problem_type=problem if head == "sequence-classification" else None)

    def test_there_are_no_token_types(self):
        with tempfile.TemporaryDirectory() as directory:
            self.random_model(0)[1].save_pretrained(directory)
            self.check_faults(directory, [
                (["--input_ids", "[[1, 2]]", "--token_type_ids", "[[0, 0]]"], 2, ["--token_type_ids", "distilbert"]),
            ])


if __name__ == "__main__":
    unittest.main()
