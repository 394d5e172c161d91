"""tzoo forward and export beside transformers: random RoBERTas and XLM-RoBERTas with every head."""

import unittest

import transformers
from forward_parity import ForwardParity


class RobertaTest(ForwardParity, unittest.TestCase):
    HEADS = {
        "base": transformers.RobertaModel,
        "masked-lm": transformers.RobertaForMaskedLM,
        "sequence-classification": transformers.RobertaForSequenceClassification,
        "token-classification": transformers.RobertaForTokenClassification,
        "question-answering": transformers.RobertaForQuestionAnswering,
    }

    CONFIG = transformers.RobertaConfig

    @classmethod
    def random_config(cls, draw, head):
        heads = draw.choice([1, 2, 3, 4])
        labels = 2 if head == "question-answering" else draw.choice([1, 2, 3, 7])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        pad = draw.choice([0, 1, 1, 3])
        return cls.CONFIG(
            num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
            hidden_size=heads * draw.choice([4, 5, 8, 16]), intermediate_size=draw.choice([7, 24, 33]),
            vocab_size=draw.randint(6, 90), max_position_embeddings=draw.randint(13, 34),
            type_vocab_size=draw.choice([1, 2]), hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
            layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]), tie_word_embeddings=draw.random() < 0.6,
            pad_token_id=pad, bos_token_id=None, eos_token_id=None, num_labels=labels,
            problem_type=problem if head == "sequence-classification" else None,
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)  # must not act outside of training


class XlmRobertaTest(RobertaTest):
    CONFIG = transformers.XLMRobertaConfig
    HEADS = {head: getattr(transformers, "XLM" + cls.__name__) for head, cls in RobertaTest.HEADS.items()}


if __name__ == "__main__":
    unittest.main()
