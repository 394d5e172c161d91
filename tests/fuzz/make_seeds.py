"""Writes seeds/: small inputs from which the fuzzers start, where tests/golden has none. Run by hand."""

import json
import pathlib
import sys

import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "interop"))
import gguf_files  # noqa: E402

PIPELINES = HERE.parent / "golden" / "tokenizer_pipelines"


def seed(target, name, data):
    path = HERE / "seeds" / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def vocabulary(writer):
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab", "\u2581", "<0x0A>"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0, 0.0, 0.0, -3.0, -2.0, -1.0, -4.0, 0.0])
    writer.add_token_types([2, 3, 3, 1, 1, 1, 1, 6])


def models():
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
             "num_key_value_heads": 1, "vocab_size": 8, "max_position_embeddings": 8}
    path = HERE / "seeds" / "gguf"
    path.mkdir(parents=True, exist_ok=True)
    for name, kind in (("float.gguf", gguf_files.TYPES.F32), ("blocks.gguf", gguf_files.TYPES.Q8_0)):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
        gguf_files.write(path / name, model, kind, add=vocabulary)


def vocabularies():
    for name in ("gpt2", "roberta"):
        files = [(PIPELINES / f"classic_{name}" / file).read_bytes() for file in ("vocab.json", "merges.txt")]
        seed("classic_vocabulary", name, b"\0".join(files))


def constraints():
    for i, pattern in enumerate((r"[a-z]{2,5}(\d+|x*?)?\.", r"^(?:yes|no)$", r"[^\W\d]\x41\u00e9\S|.{3,}", r"(a|b)*(c{1,3}|)")):
        seed("regular_expression", str(i), pattern)
    schemas = (
        {"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 9}, "age": {"type": "integer", "minimum": 0}},
         "required": ["name"], "additionalProperties": False},
        {"$ref": "#/$defs/n", "minimum": 5, "$defs": {"n": {"type": "integer", "exclusiveMaximum": 300}}},
        {"anyOf": [{"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}, {"enum": [1, "a", None, 2.5]}]},
        {"allOf": [{"type": "string"}, {"pattern": "^a[bc]+$"}], "description": "text"},
        {"oneOf": [{"const": {"a": [1, 2]}}, {"type": "number"}]},
    )
    for i, schema in enumerate(schemas):
        seed("json_schema", f"{i}.json", json.dumps(schema))


def chat_templates():
    seed("chat_template", "chatml", """{%- if tools %}{{- tools | tojson(indent=2) }}{%- endif %}
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' + (message.content or '') | trim + '<|im_end|>' }}
{%- if loop.last and add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
{%- endfor %}""")
    seed("chat_template", "macro", """{% macro call(name, arguments={}) %}{% for key, value in arguments.items() | sort %}
{{ key ~ '=' ~ value }}{% endfor %}{% endmacro %}
{% set ns = namespace(found=false) %}{% for m in messages if m.tool_calls is defined %}
{% for c in m.tool_calls %}{{ call(c.name, arguments=c.arguments) }}{% endfor %}{% set ns.found = true %}{% else %}none{% endfor %}
{{ bos_token if ns.found else eos_token[::-1] }}{{ messages[1:]|map(attribute='role')|join(', ')|upper }}""")
    seed("chat_template", "blocks", """{% generation %}{{ messages | length // 2 + 3 % 2 ** 2 }}{% endgeneration %}
{% filter indent(2) %}{{ range(3) | list | string }}{% endfilter %}{% set text %}{{ 'a' * 3 }}{% endset %}{{ text.split('a') | tojson }}
{{ 'x' in 'xyz' and not messages is mapping }}{{ {'a': [1, 2.5, none]}.get('a') | last is none }}{# a comment #}""")


def examples():
    texts = {
        "records.tsv": "text\tlabel\nwell done\tgood\nno\tbad\n",
        "records.jsonl": '{"text": "a \\u00e9", "label": 3, "more": true}\n{"text": "b", "label": "x"}\n',
        "tagged.txt": "Ann\tB-PER\nsleeps\tO\n\nBob\tB-PER\n",
        "tagged.jsonl": '{"tokens": ["Ann", "sleeps"], "labels": ["B", "O"]}\n',
        "questions.tsv": "question\tcontext\tanswer\tanswer_start\nwho?\tAnn s\u00e9es Bob\tBob\t9\nwhy?\tno\t\t\n",
        "questions.jsonl": '{"question": "who?", "context": "Ann", "answers": {"text": ["Ann"], "answer_start": [0]}}\n',
    }
    for name, text in texts.items():
        seed("examples", name, name.encode() + b"\0" + text.encode())


def runs():
    ids = b"\1\0\2\0\3\0\4\0"
    seed("token_dataset", "nanogpt", b"\0" + ids)
    meta = {"vocab_size": 5, "dtype": "uint16", "train_tokens": 4, "val_tokens": 2, "tokenizer": "char", "source_sha256": ""}
    seed("token_dataset", "own", json.dumps(meta).encode() + b"\0" + ids)
    state = {"iteration": 5, "micro_steps": 0, "best_val_loss": 1.5, "stale_evaluations": 0, "counted_evaluation": 4}
    rows = "".join(json.dumps({"iter": i, "train_loss": 2.0, "lr": 0.1}) + "\n" for i in range(8))
    seed("run_files", "resumed", json.dumps(state).encode() + b"\0" + rows.encode() + b'{"iter": 8, "tr')


def requests():
    seed("http", "get", b"GET /a%20b?c=d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    seed("http", "post", b"POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
                         b'{"a": 1}\nGET / HTTP/1.1\r\nHost: a\r\n\r\n')
    seed("http", "chunked", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nabcde\r\n0\r\n\r\n")
    seed("http", "range", b"OPTIONS * HTTP/1.0\r\nRange: bytes=0-1,-5\r\nAccept-Encoding: gzip\r\n\r\n")


for write in (models, vocabularies, constraints, chat_templates, examples, runs, requests):
    write()
