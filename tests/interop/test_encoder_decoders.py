"""tzoo forward, generate and export beside transformers: random models of mT5, BART and its relatives."""

import random
import sys
import unittest

import torch
import transformers
from forward_parity import ForwardParity, hf
from generation_parity import GenerationParity
from test_t5 import with_small_queries

# model_type: (configuration, base model, model that generates)
FAMILIES = {
    "mt5": (transformers.MT5Config, transformers.MT5Model, transformers.MT5ForConditionalGeneration),
    "umt5": (transformers.UMT5Config, transformers.UMT5Model, transformers.UMT5ForConditionalGeneration),
    "m2m_100": (transformers.M2M100Config, transformers.M2M100Model, transformers.M2M100ForConditionalGeneration),
    "bart": (transformers.BartConfig, transformers.BartModel, transformers.BartForConditionalGeneration),
    "mbart": (transformers.MBartConfig, transformers.MBartModel, transformers.MBartForConditionalGeneration),
    "pegasus": (transformers.PegasusConfig, transformers.PegasusModel, transformers.PegasusForConditionalGeneration),
    "marian": (transformers.MarianConfig, transformers.MarianModel, transformers.MarianMTModel),
}
CLASSIFIERS = {
    "bart": {"sequence-classification": transformers.BartForSequenceClassification,
             "question-answering": transformers.BartForQuestionAnswering},
    "mbart": {"sequence-classification": transformers.MBartForSequenceClassification,
              "question-answering": transformers.MBartForQuestionAnswering},
}
# MarianMTModel leaves them out of its files, MarianModel does not.
SINUSOIDS = {"marian": ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")}


def last_norm(decoder):
    if hasattr(decoder, "block"):
        return decoder.final_layer_norm
    return getattr(decoder, "layer_norm", decoder.layers[-1].final_layer_norm)


class EncoderDecoderParity(ForwardParity, GenerationParity):
    SIDE = "right"

    @classmethod
    def config(cls, draw, vocabulary, layers, decoder_layers, heads, head_dim, inner, scaled, **more):
        if cls.CONFIG in (transformers.MT5Config, transformers.UMT5Config):
            more.pop("max_position_embeddings")
            return cls.CONFIG(
                vocab_size=vocabulary, d_model=heads * head_dim, d_kv=head_dim + 1, d_ff=inner, num_layers=layers,
                num_decoder_layers=decoder_layers, num_heads=heads, relative_attention_num_buckets=draw.choice([8, 32]),
                feed_forward_proj=draw.choice(["gated-gelu", "gated-silu", "relu"]), eos_token_id=None, **more)
        return cls.CONFIG(
            vocab_size=vocabulary, d_model=heads * head_dim, encoder_layers=layers, decoder_layers=decoder_layers,
            encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=inner, decoder_ffn_dim=inner,
            activation_function=draw.choice(["gelu", "relu", "swish", "gelu_new"]), scale_embedding=scaled,
            dropout=0.1, attention_dropout=0.1, activation_dropout=0.1,  # must not act outside of training
            bos_token_id=None, eos_token_id=None, forced_eos_token_id=None, **more)

    @classmethod
    def random_config(cls, draw, head):
        config = cls.config(draw, draw.randint(6, 90), draw.choice([1, 2, 3]), draw.choice([1, 2, 3]), draw.choice([1, 2, 4]),
                            draw.choice([4, 6, 8]), draw.choice([7, 16, 33]), draw.random() < 0.5, max_position_embeddings=31,
                            pad_token_id=draw.choice([0, 1, 3]), decoder_start_token_id=draw.choice([0, 2, 4]))
        if head == "sequence-classification":
            config.eos_token_id = 5
        return config

    def random_model(self, seed):
        head, model, inputs = super().random_model(seed)
        return head, with_small_queries(model) if model.config.model_type in ("mt5", "umt5") else model, inputs

    def generator(self, seed):
        # No decoder deeper than the encoder: the cache that transformers 5.23 makes for generate has too few layers then.
        config = self.config(random.Random(seed), 61, 2, [2, 1, 2][seed % 3], 4, 8, 40, False, max_position_embeddings=64,
                             pad_token_id=0, decoder_start_token_id=[0, 3][seed % 2])

        def make(number):
            model = hf.random_model(self.HEADS["seq2seq-lm"], config, seed + 100 * number)
            if config.model_type in ("mt5", "umt5"):
                with_small_queries(model)
            decoder = model.get_decoder()
            with torch.no_grad():  # a tied model is apt to repeat its tokens
                decoder.embed_tokens.weight.mul_(4)
                torch.nn.init.normal_(last_norm(decoder).weight)
            return model

        return self.first_varied(seed, make, 100)


def test_of(model_type):
    config, base, generator = FAMILIES[model_type]
    return type(model_type + "_test", (EncoderDecoderParity, unittest.TestCase),
                dict(CONFIG=config, HEADS={"seq2seq-lm": generator, "base": base, **CLASSIFIERS.get(model_type, {})}, COMPUTED=SINUSOIDS.get(model_type, ())))


def load_tests(loader, tests, pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(test_of(name)) for name in CHOSEN)


# Families of the command line, or all.
CHOSEN = [word for word in sys.argv[1:] if word in FAMILIES] or list(FAMILIES)

if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word not in FAMILIES])
