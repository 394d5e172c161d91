"""tzoo forward and export beside transformers: random ModernBERTs, ELECTRAs, MPNets, DeBERTas and Nomic BERTs with every head."""

import sys
import unittest

import transformers
from forward_parity import ForwardParity


def heads_of(name, **more):
    kinds = {"base": "Model", "masked-lm": "ForMaskedLM", "sequence-classification": "ForSequenceClassification",
             "token-classification": "ForTokenClassification", "question-answering": "ForQuestionAnswering", **more}
    return {head: getattr(transformers, name + kind, None) for head, kind in kinds.items()}


class EncoderParity(ForwardParity):
    @classmethod
    def random_config(cls, draw, head):
        heads = draw.choice([1, 2, 3, 4])
        labels = 2 if head == "question-answering" else draw.choice([1, 2, 3, 7])
        problem = draw.choice([None, None, "regression", "multi_label_classification"])
        return cls.CONFIG(
            num_hidden_layers=draw.choice([1, 2, 3, 5]), num_attention_heads=heads,
            hidden_size=heads * draw.choice([4, 6, 8, 16]), intermediate_size=draw.choice([7, 24, 33]),
            vocab_size=draw.randint(6, 90), max_position_embeddings=draw.randint(13, 34),
            tie_word_embeddings=draw.random() < 0.6, bos_token_id=None, eos_token_id=None, num_labels=labels,
            problem_type=problem if head == "sequence-classification" else None, **cls.more(draw))


class ModernBertTest(EncoderParity, unittest.TestCase):
    CONFIG, HEADS = transformers.ModernBertConfig, heads_of("ModernBert")

    @staticmethod
    def more(draw):
        return dict(
            hidden_activation=draw.choice(["gelu", "gelu_new", "relu", "silu"]), norm_eps=draw.choice([1e-12, 1e-5, 1e-3]),
            pad_token_id=draw.choice([0, 3, None]), cls_token_id=None, sep_token_id=None,
            local_attention=draw.choice([2, 3, 8, 128]), norm_bias=draw.random() < 0.5, attention_bias=draw.random() < 0.5,
            mlp_bias=draw.random() < 0.5, classifier_pooling=draw.choice(["cls", "mean"]),
            mlp_dropout=0.1, embedding_dropout=0.1, classifier_dropout=0.1)  # must not act outside of training


class EmbeddingGemmaTest(EncoderParity, unittest.TestCase):
    CONFIG, HEADS = transformers.Gemma3TextConfig, {"base": transformers.Gemma3TextModel}

    @staticmethod
    def more(draw):
        return dict(use_bidirectional_attention=True, sliding_window=draw.choice([2, 3, 8, 512]), head_dim=draw.choice([4, 6]),
                    num_key_value_heads=1, query_pre_attn_scalar=draw.choice([9, 16]), pad_token_id=0)


class ElectraTest(EncoderParity, unittest.TestCase):
    CONFIG, HEADS = transformers.ElectraConfig, heads_of("Electra", **{"replaced-tokens": "ForPreTraining"})

    @staticmethod
    def more(draw):
        return dict(
            hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]), layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]),
            embedding_size=draw.choice([5, 8, 16, 24]), type_vocab_size=draw.choice([1, 2, 3]),
            pad_token_id=draw.choice([0, 0, 3, None]), hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


class MPNetTest(EncoderParity, unittest.TestCase):
    CONFIG, HEADS = transformers.MPNetConfig, heads_of("MPNet")

    @staticmethod
    def more(draw):
        return dict(
            hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]), layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]),
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


class NomicBertTest(EncoderParity, unittest.TestCase):
    CONFIG = transformers.NomicBertConfig
    HEADS = {head: cls for head, cls in heads_of("NomicBert").items() if cls is not None}

    @staticmethod
    def more(draw):
        return dict(
            hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]), layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-3]),
            type_vocab_size=draw.choice([1, 2, 3]), pad_token_id=draw.choice([0, 0, 3]), head_dim=draw.choice([None, 6]),
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


class DebertaTest(EncoderParity, unittest.TestCase):
    CONFIG, HEADS = transformers.DebertaV2Config, heads_of("DebertaV2")
    DISENTANGLED = dict(relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False)

    @classmethod
    def more(cls, draw):
        buckets = draw.choice([4, 5, 8, 16])
        return dict(
            cls.DISENTANGLED, position_buckets=buckets, pos_att_type=draw.choice(["p2c|c2p", ["c2p", "p2c"]]),
            max_relative_positions=draw.choice([-1, buckets, 40]), hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
            layer_norm_eps=draw.choice([1e-7, 1e-5, 1e-3]), type_vocab_size=draw.choice([0, 0, 1, 2, 3]),
            pad_token_id=draw.choice([0, 0, 3, None]), hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


FAMILIES = {"modernbert": ModernBertTest, "electra": ElectraTest, "mpnet": MPNetTest, "deberta": DebertaTest,
            "nomic_bert": NomicBertTest}


def load_tests(loader, tests, pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(FAMILIES[name]) for name in CHOSEN)


# Families of the command line, or all.
CHOSEN = [word for word in sys.argv[1:] if word in FAMILIES] or list(FAMILIES)

if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word not in FAMILIES])
