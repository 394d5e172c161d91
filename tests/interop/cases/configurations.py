"""A key of a family's configuration with another value: transformers and tzoo forward compute the same."""

import json

from safetensors.torch import load_file
from test_albert import AlbertTest
from test_bert import BertTest
from test_decoders import FAMILIES as DECODERS
from test_decoders import test_of as decoder_test
from test_distilbert import DistilBertTest
from test_encoder_decoders import FAMILIES as ENCODER_DECODERS
from test_encoder_decoders import test_of as encoder_decoder_test
from test_encoders import FAMILIES as ENCODERS
from test_gpt2 import Gpt2Test
from test_llama import LlamaTest
from test_roberta import RobertaTest, XlmRobertaTest
from test_t5 import T5Test
from transformers.activations import ACT2FN

from cases.outcome import EQUAL, NO_REFERENCE, refused_by_name, tzoo
from forward_parity import difference, flags_of, hf

FAMILIES = [AlbertTest, BertTest, DistilBertTest, Gpt2Test, LlamaTest, RobertaTest, XlmRobertaTest,
            T5Test, *map(decoder_test, DECODERS),
            *map(encoder_decoder_test, ENCODER_DECODERS), *ENCODERS.values()]
# Keys that the check of all families calls by another's name.
SHARED_NAMES = {"layer_norm_epsilon": "layer_norm_eps", "rms_norm_eps": "layer_norm_eps", "initializer_factor": "initializer_range",
                "init_std": "initializer_range", "problem_type": "labels of a regression"}
WORDS = {
    "feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu", "gated-relu", "gelu_new", "gated-gelu_new"],
    "position_embedding_type": ["absolute", "relative_key", "relative_key_query"],
    "problem_type": ["regression", "single_label_classification", "multi_label_classification"],
    "summary_type": ["last", "first", "mean"],
    "layer_types": [["full_attention", "sliding_attention"], ["sliding_attention"] * 2],
    "classifier_pooling": ["cls", "mean"],
}
ROPES = [
    {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}, {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
    {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0, "original_max_position_embeddings": 20},
    {"rope_type": "longrope", "short_factor": [1.0] * 3, "long_factor": [2.0] * 3, "rope_theta": 10000.0,
     "original_max_position_embeddings": 10},
    {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500.0,
     "original_max_position_embeddings": 10},
    {"rope_type": "default", "rope_theta": 100.0}, {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
]


def another(chance, key, value):
    """A value of the key's kind."""
    if key in ("rope_parameters", "rope_scaling"):
        found = ROPES
    elif key in WORDS:
        found = WORDS[key]
    elif isinstance(value, str) and "act" in key:
        found = sorted(ACT2FN)
    elif isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int):
        found = [value + 1, max(value - 1, 0), 2 * value + 2]
    elif isinstance(value, float):
        found = [2 * value + 0.1, 0.0]
    elif isinstance(value, str):
        found = [value + "x"]
    else:
        found = [True, 1, 2, 0.5]
    return chance.choice([*found, None])


def reference(model, head, folder, inputs):
    """None where transformers refuses the configuration finds other weights than its model has, or computes no numbers."""
    try:
        changed, report = type(model).from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
        if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
            return None, None
        tensors = hf.expected_tensors(changed.eval(), head, inputs)
        return (changed, tensors) if all(tensor.isfinite().all() for tensor in tensors.values()) else (None, None)
    except Exception:
        return None, None


def fills_a_window(model, inputs):
    """Padding as wide as a window hides all that some queries see; their answers, which ModernBERT's heads use, are undefined."""
    if model.config.model_type != "modernbert":
        return False
    return bool(((inputs["attention_mask"] == 0).sum(1) > model.config.sliding_window).any())


def check(chance, folder):
    suite = chance.choice(FAMILIES)()
    head, model, inputs = suite.random_model(chance.getrandbits(31))
    model.save_pretrained(folder)
    path = folder / "config.json"
    written = json.loads(path.read_text())
    known = {**model.config.to_dict(), **written}
    key = chance.choice(sorted(set(known) - {"architectures", "model_type"}))  # which name another model
    value = another(chance, key, known[key])
    path.write_text(json.dumps({**written, key: value}))
    if key == "pad_token_id" and isinstance(value, int):  # what is hidden is padding, or the last token's answer is undefined
        inputs["input_ids"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, value)
    changed, expected = reference(model, head, folder, inputs)
    output = folder / "out.safetensors"
    done = tzoo("forward", "--model", folder, *flags_of(inputs), "--output", output,
                *(["--gradients"] if "labels" in inputs else []))
    if expected is None or fills_a_window(changed, inputs):
        return NO_REFERENCE
    if done.returncode:
        return refused_by_name(done, key, SHARED_NAMES.get(key, key))
    fault = difference(changed, head, inputs, load_file(output), expected)
    assert not fault, f"{type(model).__name__}, {key} = {value}: {fault}"
    return EQUAL
