"""tzoo generate --json_schema beside jsonschema: schemas of the kinds in the JSON-Schema-Test-Suite and JSONSchemaBench.
Every sample of an accepted schema must be valid; a refusal must name what it refuses. cases/schemas.py draws others."""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from test_generate_choices import write_byte_tokenizer  # noqa: E402
from tiny_checkpoint import write_checkpoint  # noqa: E402

SAMPLES = 12
INTEGER, TEXT = {"type": "integer"}, {"type": "string", "maxLength": 5}
POINT = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}, "required": ["x"]}

ACCEPTED = [
    # types
    True, {}, INTEGER, {"type": "number"}, {"type": "null"}, {"type": "boolean"}, TEXT, {"type": ["integer", "null"]},
    {"type": ["string", "number"], "maxLength": 3, "minimum": 2}, {"type": "array", "maxItems": 2},
    # numbers
    {"type": "integer", "minimum": -5, "maximum": 12}, {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 9},
    {"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "exclusiveMinimum": -3, "maximum": -1}, {"type": "number", "minimum": -1, "exclusiveMaximum": 1},
    {"minimum": 3}, {"type": "integer", "minimum": 1.0, "maximum": 4.0}, {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1.5},
    {"type": "number", "exclusiveMinimum": 0.1, "maximum": 0.3}, {"type": "number", "exclusiveMinimum": -2.5, "exclusiveMaximum": 1e-9},
    {"type": "integer", "exclusiveMinimum": -1.5, "maximum": 0.5}, {"type": "number", "allOf": [{"minimum": 0.5}, {"exclusiveMaximum": 0.51}]},
    {"oneOf": [{"type": "number", "maximum": 0.25}, {"type": "number", "exclusiveMinimum": 0.25}]},
    # texts
    {"type": "string", "minLength": 2, "maxLength": 4}, {"type": "string", "pattern": "^[a-f0-9]{4}$"},
    {"type": "string", "pattern": "b+", "maxLength": 6}, {"type": "string", "pattern": "^\\S+$", "maxLength": 4},
    {"type": "string", "pattern": "^.+$", "minLength": 2, "maxLength": 4}, {"pattern": "^(a|b)*$", "minLength": 3},
    {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "z$"}, {"maxLength": 5}]},
    {"type": "string", "pattern": "^\\d{3}-\\w\\s?$"}, {"type": "string", "pattern": "^[^\\s\\d]{2}$"},
    # enum and const
    {"enum": [1, "a", None, True, [1, {"b": 2}], {"c": "ä"}]}, {"const": {"a": [1.5, False]}}, {"const": "\"\\/\b\n\u2028é"},
    {"enum": [1, 5, 10], "minimum": 5}, {"enum": ["a", "bb", "ccc"], "minLength": 2}, {"enum": [1, "1"], "type": "string"},
    {"enum": [1, 2, 3], "const": 2}, {"enum": ["ab", "cd"], "pattern": "^c"}, {"enum": [[], [1], [1, 2]], "minItems": 1},
    {"enum": [{"a": 1}, {"b": 1}], "required": ["b"]}, {"enum": [0, False, 1.0, True], "type": "boolean"},
    {"enum": [1.0, 2.5], "type": "integer"},
    # arrays
    {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 3}, {"items": {"enum": [1, 2]}, "maxItems": 4},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, "maxItems": 2},
    {"type": "array", "items": False}, {"type": "array", "items": True, "maxItems": 1},
    # objects
    POINT, {"type": "object"}, {"type": "object", "additionalProperties": False},
    {"type": "object", "properties": {"a": True, "b": False}}, {"properties": {"é\"\n/~%": INTEGER}, "required": ["é\"\n/~%"]},
    {"type": "object", "properties": {"p": POINT, "l": {"type": "array", "items": POINT, "maxItems": 2}}, "required": ["p"]},
    {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": {"type": "string"}},
    {"required": ["a", "b"], "properties": {"a": TEXT, "b": {"type": "null"}, "c": {"const": 0}}},
    {"type": "object", "properties": {"a": INTEGER}, "title": "t", "description": "d", "default": {}, "examples": [1],
     "$comment": "c", "deprecated": True, "readOnly": True, "writeOnly": False, "$schema":
     "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/s", "$anchor": "here"},
    # references
    {"$ref": "#/$defs/n", "minimum": 5, "$defs": {"n": INTEGER}}, {"$ref": "#/definitions/a", "definitions": {"a": POINT}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b", "maximum": 9}, "b": {"type": "integer", "minimum": 8}}},
    {"properties": {"a": {"$ref": "#/$defs/x%25y~1z~0"}}, "required": ["a"], "$defs": {"x%y/z~": {"enum": ["found"]}}},
    {"properties": {"a": INTEGER, "b": {"$ref": "#/properties/a", "maximum": 3}}, "required": ["b"]},
    {"$ref": "#/$defs/p", "properties": {"z": INTEGER}, "required": ["z"], "$defs": {"p": POINT}},
    {"$ref": "#/allOf/0", "allOf": [{"type": "string", "maxLength": 2}]},
    {"allOf": [{"$ref": "#/$defs/p"}, {"properties": {"next": {"$ref": "#/$defs/p"}}}], "$defs": {"p": POINT}},
    {"type": "object", "properties": {"$ref": {"type": "string", "maxLength": 2}}},
    # allOf
    {"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5}]}, {"allOf": [True, INTEGER]},
    {"allOf": [POINT, {"properties": {"x": {"minimum": 3, "maximum": 4}}}]}, {"allOf": [{"type": "number"}, INTEGER]},
    {"allOf": [{"properties": {"a": INTEGER}, "additionalProperties": False}, {"properties": {"b": INTEGER}}]},
    {"allOf": [{"properties": {"a": INTEGER}, "additionalProperties": {"maximum": 3}}, {"properties": {"b": INTEGER}}]},
    {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"type": "integer"}]},
    {"allOf": [{"type": "array", "items": INTEGER}, {"items": {"minimum": 7}, "maxItems": 2}]},
    {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}], "maximum": 3},
    {"allOf": [{"anyOf": [{"type": "string"}, {"minimum": 7, "type": "integer"}]}, {"anyOf": [{"maxLength": 2}]}]},
    # anyOf
    {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 30}], "minimum": 25}, {"anyOf": [INTEGER, TEXT]},
    {"anyOf": [{"required": ["x"]}, {"required": ["y"]}], "properties": {"x": INTEGER, "y": TEXT}},
    {"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "^a{4}$"}]}, {"anyOf": [INTEGER, False]}, {"anyOf": [True]},
    {"anyOf": [{"const": "a"}, {"const": "b"}], "enum": ["b", "c"]}, {"anyOf": [POINT, {"type": "null"}]},
    {"type": "object", "properties": {"a": {"anyOf": [INTEGER, {"type": "null"}], "maximum": 4}}, "required": ["a"]},
    {"anyOf": [{"type": "integer", "minimum": 5, "maximum": 4}, {"const": "only"}]},
    # oneOf
    {"oneOf": [{"type": "null"}, INTEGER]}, {"oneOf": [{"const": 1}, {"const": 2}]}, {"oneOf": [INTEGER]},
    {"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 4}]},
    {"type": "integer", "oneOf": [{"maximum": 3}, {"exclusiveMinimum": 3}]},
    {"type": "object", "required": ["k"], "properties": {"k": {}}, "oneOf": [
        {"properties": {"k": {"const": "a"}, "n": INTEGER}, "required": ["n"]}, {"properties": {"k": {"const": "b"}}}]},
    {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
        "a": {"type": "object", "properties": {"t": {"enum": ["a", "A"]}}, "required": ["t"]},
        "b": {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"]}}},
    {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3, "maxLength": 4}]},
    # tuples
    {"type": "array", "prefixItems": [INTEGER, TEXT], "minItems": 2, "maxItems": 2}, {"prefixItems": [INTEGER, TEXT], "items": False},
    {"prefixItems": [INTEGER], "items": {"type": "boolean"}, "minItems": 3, "maxItems": 4}, {"prefixItems": [INTEGER, TEXT], "maxItems": 1},
    {"prefixItems": [INTEGER, {"type": "null"}], "minItems": 1, "items": TEXT, "maxItems": 3}, {"type": "array", "prefixItems": [TEXT]},
    # formats
    *({"type": "string", "format": name} for name in ("date", "time", "date-time", "email", "hostname", "uuid", "ipv4", "uri")),
    {"type": "string", "format": "int-of-mine", "maxLength": 3}, {"type": "integer", "format": "int64", "maximum": 9},
    {"type": "string", "format": "date", "pattern": "^2026"}, {"format": "ipv4", "maxLength": 9},
    # as pydantic and zod write them
    {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}, {"type": "number", "maximum": 1e300},
    {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": INTEGER}, {"type": "string", "maxLength": 10**6},
    {"type": "array", "items": {"const": 1}, "maxItems": 10**6},
    {"type": "object", "required": ["a", "b"], "properties": {"a": INTEGER}}, {"required": ["a"], "additionalProperties": INTEGER},
    {"discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}}, "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
     "$defs": {"Cat": {"type": "object", "properties": {"kind": {"const": "cat", "default": "cat"}, "lives": INTEGER}},
               "Dog": {"type": "object", "properties": {"kind": {"const": "dog", "default": "dog"}}}}},
    {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png", "maxLength": 4, "x-order": 1},
    # of everyday use
    {"type": "object", "properties": {
        "id": {"type": "integer", "minimum": 1}, "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "price": {"type": "number", "minimum": 0}, "tags": {"type": "array", "items": TEXT, "maxItems": 2},
        "size": {"enum": ["S", "M", "L"]}, "vendor": {"oneOf": [{"$ref": "#/$defs/vendor"}, {"type": "null"}]}},
     "required": ["id", "name", "price", "vendor"], "additionalProperties": False,
     "$defs": {"vendor": {"type": "object", "properties": {"url": {"type": "string", "pattern": "^https?://[a-z]+$"}},
                          "required": ["url"]}}},
]

# Keywords that a message must name, with schemas.
REFUSED = [
    ("format", {"type": "string", "format": 5}), ("not", {"not": INTEGER}), ("if", {"if": INTEGER, "then": {"minimum": 1}}),
    ("dependentRequired", {"dependentRequired": {"a": ["b"]}}), ("dependentSchemas", {"dependentSchemas": {}}),
    ("patternProperties", {"patternProperties": {"^a": INTEGER}}), ("propertyNames", {"propertyNames": {"maxLength": 2}}),
    ("unevaluatedProperties", {"unevaluatedProperties": False}), ("unevaluatedItems", {"unevaluatedItems": False}),
    ("uniqueItems", {"uniqueItems": True}), ("contains", {"contains": INTEGER}), ("prefixItems", {"prefixItems": []}),
    ("multipleOf", {"type": "integer", "multipleOf": 3}), ("minProperties", {"minProperties": 1}),
    ("maxProperties", {"type": "object", "maxProperties": 1}), ("$dynamicRef", {"$dynamicRef": "#a"}),
    ("dependencies", {"dependencies": {"a": ["b"]}}), ("discriminator", {"discriminator": "kind"}),
    ("$vocabulary", {"$vocabulary": {}}), ("prefixItems", {"prefixItems": [INTEGER], "allOf": [{"items": TEXT}]}), ("nullable", {"type": "string", "nullable": True}),
    ("items", {"items": [INTEGER]}), ("properties", {"properties": 5}), ("required", {"required": True}),
    ("exclusiveMinimum", {"minimum": 1, "exclusiveMinimum": True}), ("minimum", {"type": "number", "minimum": 0.30000000000000004}), ("no value", {"type": "number", "exclusiveMinimum": 0.5, "maximum": 0.5}),
    ("minimum", {"minimum": 10**15}), ("maximum", {"maximum": -1e300}), ("maxLength", {"maxLength": -1}), ("minItems", {"minItems": 10**9}), ("too large", {"minItems": 9999}),
    ("type", {"type": "any"}), ("~2", {"$ref": "#/$defs/~2"}), ("#/$defs/a", {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
    ("'#'", {"properties": {"child": {"$ref": "#"}}}), ("other.json", {"$ref": "other.json"}), ("#here", {"$ref": "#here"}),
    ("$id", {"properties": {"a": {"$id": "b", "$ref": "#"}}}), ("oneOf", {"oneOf": [INTEGER, {"type": "number"}]}),
    ("oneOf", {"oneOf": [{"minimum": 2}, {"maximum": 3}]}), ("no value", {"allOf": [INTEGER, TEXT]}), ("no value", False),
    ("lookaround", {"pattern": "^(?!a)"}), ("no value", {"enum": [1, 2], "const": 3}), ("no value", {"enum": []}),
    ("required", {"type": "object", "required": ["a"], "additionalProperties": False}), ("enum", {"enum": [{"a": 1}], "properties": {"a": TEXT}}),
]


def write_byte_model(folder):
    write_byte_tokenizer(write_checkpoint(folder / "model", vocab_size=256, eos_token_id=0, n_positions=512, n_layer=1))


def generate(folder, schema, samples):
    """The folder holds the model of write_byte_model."""
    path = folder / "schema.json"
    path.write_text(json.dumps(schema))
    words = ["--prompt", "a", "--json", "--temperature", "1.5", "--top_k", "0", "--max_new_tokens", "150", "--json_schema",
             str(path), "--num_samples", str(samples), "--seed", "1"]
    return subprocess.run([os.environ["TZOO"], "generate", "--model", str(folder / "model"), *words], capture_output=True,
                          timeout=120, check=False, text=True)


# The classes of ECMA-262 with the flag u, whose expressions JSON Schema has; jsonschema searches with Python's.
CLASSES = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)],
           "s": [(9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
                 (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]}
for letter, ranges in list(CLASSES.items()):
    ends = [-1, *(code for pair in ranges for code in pair), 0x110000]
    CLASSES[letter.upper()] = [(ends[i] + 1, ends[i + 1] - 1) for i in range(0, len(ends), 2)]


def as_python(expression):
    """An ECMAScript expression as one of Python: its classes as ranges of codes, and an end that is the end."""
    found, in_set = "", False
    for part in re.findall(r"\\?.", expression, re.DOTALL):
        if part[-1] in CLASSES and part[0] == "\\" and len(part) == 2:
            inside = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in CLASSES[part[1]])
            found += inside if in_set else f"[{inside}]"
            continue
        in_set = part == "[" or (in_set and part != "]")
        found += {".": "[^\n\r\u2028\u2029]", "$": r"\Z"}.get(part, part) if not in_set else part
    return found


def search(validator, expression, text, schema):
    if validator.is_type(text, "string") and not re.search(as_python(expression), text):
        yield jsonschema.ValidationError(f"{text!r} does not match {expression!r}")


# Of Python's own parsers, each stricter than the format or equal to it.
FORMATS = jsonschema.FormatChecker(("email", "ipv4", "date", "uuid"))
for name, parse in (("time", datetime.time.fromisoformat), ("date-time", datetime.datetime.fromisoformat)):
    FORMATS.checks(name, raises=ValueError)(lambda text, parse=parse: re.search("(Z|[+-]..:..)$", text) and parse(text))
FORMATS.checks("hostname", raises=ValueError)(lambda text: all(re.fullmatch("(?!-)[A-Za-z0-9-]{1,63}(?<!-)", part) for part in text.split(".")))
FORMATS.checks("uri", raises=ValueError)(lambda text: bool(urllib.parse.urlparse(text).scheme) and " " not in text)

Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": search})


def check_samples(schema, done, count):
    validator = Validator(schema, format_checker=FORMATS)
    texts = json.loads(done.stdout)["text"]
    for text in texts:
        faults = [fault.message for fault in validator.iter_errors(json.loads(text))]
        assert not faults, f"{text} of {json.dumps(schema)}: {faults}"
    assert len(texts) == count


class JsonSchemaTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_byte_model(self.folder)

    def assert_refused(self, done, *words):
        message = done.stderr
        self.assertEqual(done.returncode, 1, message)
        self.assertRegex(message, "^error: [^\n]*\n$")
        self.assertNotRegex(message, r"json\.exception|std::|basic_string|vector::")
        for word in words:
            self.assertIn(word, message)

    def test_samples_of_accepted_schemas_are_valid(self):
        for schema in ACCEPTED:
            with self.subTest(json.dumps(schema)):
                done = generate(self.folder, schema, SAMPLES)
                self.assertEqual(done.returncode, 0, done.stderr)
                check_samples(schema, done, SAMPLES)

    def test_what_is_not_supported_is_named(self):
        for word, schema in REFUSED:
            with self.subTest(json.dumps(schema)):
                self.assert_refused(generate(self.folder, schema, SAMPLES), word)


if __name__ == "__main__":
    unittest.main()
