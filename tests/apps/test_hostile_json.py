"""JSON, in files and in requests, with values of other types: tzoo works or refuses it in words of its own."""

import copy
import json
import os
import random
import tempfile
import unittest

from serving import Server, ServeTest
from tiny_checkpoint import CHARS, write_char_tokenizer, write_checkpoint, write_json
from tzoo_runner import CommandTest, run

# Words of the JSON library, of C++'s exceptions, and of the last resort in apps/main.cpp.
NOT_OURS = ("json.exception", "std::", "basic_string", "vector::", "_M_", "stoi", "bad_alloc", "regex_error", "terminate",
            "a value of an unexpected kind", "a value is of an unexpected kind", "a value in the input is out of range")
VALUES = [None, True, False, 0, -1, 3, 1.5, 1e300, 2**63, -(2**63), "", "a", "gpt2", "\u2581", [], [1], ["a", None], [[1]], {},
          {"a": 1}, {"type": "Sequence"}, [[[[]]]]]
IDS = "[[1, 2, 3]]"
JSON_CHARS = CHARS + '{":1},'  # what a response_format and a call of a tool need
CONFIG = ["forward", "--input_ids", IDS, "--output", os.devnull], ["inspect", "--json"]
TOKENIZER = [["tokenizer", "encode", "--json", "--offsets"]]
GENERATE = [["generate", "--input_ids", IDS, "--max_new_tokens", 2, "--json"]]
POOLING = [["embed", "--text", "a b", "--json"]]


def places(value, path=()):
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))


def mutated(root, chance):
    root = copy.deepcopy(root)
    for _ in range(chance.choice([1, 1, 1, 2])):
        path = chance.choice(list(places(root)))
        if not path:
            continue
        here = root
        for key in path[:-1]:
            here = here[key]
        if chance.random() < 0.1:
            del here[path[-1]]
        else:
            here[path[-1]] = copy.deepcopy(chance.choice(VALUES))
    return root


TOKENIZER_JSON = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": 6, "content": "[CLS]", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True}],
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        {"type": "Replace", "pattern": {"Regex": "x{2,}"}, "content": "x"}, {"type": "Prepend", "prepend": "a"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\w+|\\s"}, "behavior": "Isolated", "invert": False},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}]},
    "post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [6], "tokens": ["[CLS]"]}}},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
                                                 {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "dropout": None, "unk_token": "u", "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
              "vocab": {"u": 0, "a": 1, "b": 2, "ab": 3, " ": 4, "\u2581": 5}, "merges": [["a", "b"]]},
}
TOKENIZER_CONFIG = {
    "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_prefix_space": True, "legacy": False, "bos_token": "[CLS]",
    "eos_token": {"content": "b", "lstrip": False}, "model_max_length": 10, "extra_special_tokens": ["[X]"], "extra_ids": 2,
    "added_tokens_decoder": {"6": {"content": "[CLS]", "special": True}}, "do_lower_case": True,
    "clean_up_tokenization_spaces": False,
}
FILES = [
    ("config.json", None, CONFIG),
    ("generation_config.json", {"eos_token_id": [1, 2], "bos_token_id": 0, "pad_token_id": 0, "max_length": 20}, GENERATE),
    ("tokenizer.json", TOKENIZER_JSON, TOKENIZER), ("tokenizer_config.json", TOKENIZER_CONFIG, TOKENIZER),
    ("special_tokens_map.json", {"cls_token": "[CLS]", "additional_special_tokens": ["a"]}, TOKENIZER),
    ("model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": {"wte.weight": "model.safetensors"}}, CONFIG[:1]),
    ("1_Pooling/config.json", {"word_embedding_dimension": 16, "pooling_mode_cls_token": False,
                               "pooling_mode_mean_tokens": True}, POOLING),
    ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}], POOLING),
    ("sentence_bert_config.json", {"max_seq_length": 8, "do_lower_case": False}, POOLING),
]

CHAT_TEMPLATE = ("{% if tools %}tools{% endif %}{% for message in messages %}{{ message.role + ' ' + message.content }}"
                 "{% for call in message.tool_calls or [] %}{{ '{\"name\": \"' + call.function.name + '\", \"arguments\": ' }}"
                 "{{ call.function.arguments | tojson + '}' }}{% endfor %}{{ '\n' }}{% endfor %}")
REQUESTS = [
    ("/v1/completions", {
        "model": "tiny", "prompt": ["ab", [1, 2]], "max_tokens": 2, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1,
        "typical_p": 0.9, "seed": 1, "repetition_penalty": 1.1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "min_tokens": 1,
        "no_repeat_ngram_size": 2, "logit_bias": {"1": 2}, "stop": ["z"], "n": 1, "best_of": 1, "logprobs": 1,
        "stream": True, "stream_options": {"include_usage": True}, "regex": "a+"}),
    ("/v1/completions", {"model": "tiny", "prompt": "ab", "max_tokens": 1, "echo": True, "logprobs": 1}),
    ("/v1/chat/completions", {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "id": "x", "function": {"name": "f", "arguments": "{}"}}]}, {"role": "user", "content": "b"}],
        "max_tokens": 9, "logprobs": True, "top_logprobs": 1, "chat_template_kwargs": {"a": 1}, "modalities": ["text"],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"a": {"const": 1}}}}}}),
    ("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "a"}], "max_tokens": 60, "parallel_tool_calls": False, "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "f", "description": "g", "strict": True, "parameters": {
            "type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}}}]}),
    ("/v1/messages", {
        "model": "tiny", "max_tokens": 60, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["z"], "stream": True,
        "system": [{"type": "text", "text": "a"}], "metadata": {},
        "tools": [{"name": "f", "description": "g", "input_schema": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "messages": [
            {"role": "user", "content": "a"}, {"role": "assistant", "content": [
                {"type": "text", "text": "b"}, {"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "c"}], "is_error": True},
                                         {"type": "text", "text": "d"}]}]}),
    ("/v1/responses", {
        "model": "tiny", "max_output_tokens": 60, "temperature": 0.5, "top_p": 0.9, "stream": True, "instructions": "a", "metadata": {"a": "b"},
        "store": True, "include": [], "truncation": "disabled", "tool_choice": "required", "parallel_tool_calls": False,
        "tools": [{"type": "function", "name": "f", "description": "g", "strict": True,
                   "parameters": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}],
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
                  {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
                  {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
                  {"type": "function_call_output", "call_id": "x", "output": "c"}]}),
    ("/v1/responses", {"input": "a", "max_output_tokens": 60, "tool_choice": {"type": "function", "name": "f"},
                       "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"const": 1}}}}]}),
    ("/v1/responses", {"input": "a", "max_output_tokens": 60, "text": {"format": {
        "type": "json_schema", "name": "x", "schema": {"type": "object", "properties": {"a": {"const": 1}}}}}}),
    ("/v1/embeddings", {"model": "bare", "input": ["ab", "a"], "encoding_format": "float"}),
    ("/tokenize", {"content": "ab", "add_special": True, "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2], "keep_special": True}),
    ("/look", {"text": "ab", "append": [1], "position": 1, "layer": 0, "layers": ["0"], "sublayers": ["0.attention"],
               "heads": ["0.1"], "with": "zero", "patch_text": "bbb", "patch_part": "head", "patch_layer": 0, "patch_head": 0,
               "patch_positions": [0]}),
]


class HostileRequests(ServeTest):
    def test_no_foreign_exception_is_answered(self):
        chance = random.Random(9)
        count = 10 * int(os.environ.get("ZOO_CASES", "12"))
        with tempfile.TemporaryDirectory() as folder:
            model = write_checkpoint(os.path.join(folder, "tiny"), n_positions=400, vocab_size=len(JSON_CHARS))
            write_char_tokenizer(model, JSON_CHARS)
            write_json(model, "tokenizer_config.json", {"chat_template": CHAT_TEMPLATE})
            bare = write_checkpoint(os.path.join(folder, "bare"), tokenizer=True, architectures=["GPT2Model"])
            server = Server("--model", model, "--model", bare)
            self.addCleanup(server.close)
            for path, request in REQUESTS:
                for case in range(count):
                    body = mutated(request, chance) if case else request
                    status, data, _ = server.request("POST", path, body)
                    with self.subTest(path=path, body=json.dumps(body)):
                        self.assertIn(status, (200, 400, 404) if case else (200,), data)
                        for words in NOT_OURS:
                            self.assertNotIn(words, data)
                        self.assertNotIn("server_error", data)


class HostileJson(CommandTest):
    def test_no_foreign_exception_is_shown(self):
        chance = random.Random(8)
        count = int(os.environ.get("ZOO_CASES", "12"))
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(folder, n_layer=1)
            os.mkdir(os.path.join(folder, "1_Pooling"))
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                config = json.load(file)
            config |= {"rope_parameters": {"rope_theta": 1.0}, "torch_dtype": "float32", "id2label": {"0": "a", "1": "b"}}
            write_json(folder, "tokenizer.json", TOKENIZER_JSON)
            for name, root, commands in FILES:
                root = config if root is None else root
                for _ in range(count):
                    value = mutated(root, chance)
                    write_json(folder, name, value)
                    verb = chance.choice(commands)
                    at = 2 if verb[0] == "tokenizer" else 1
                    result = run(*verb[:at], "--model", folder, *verb[at:], stdin="[CLS]a b ab xx\n")
                    with self.subTest(name=name, value=json.dumps(value), command=verb[0]):
                        self.assertIn(result.code, (0, 1, 2), result)
                        for words in NOT_OURS:
                            self.assertNotIn(words, result.err)
                        if result.code != 0:
                            self.assert_one_error(result, result.code)
                if name in ("config.json", "tokenizer.json"):
                    write_json(folder, name, root)
                else:
                    os.remove(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
