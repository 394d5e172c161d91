"""Keywords of JSON schemas in any combination: every sample of tzoo generate --json_schema is valid by jsonschema."""

import json

import jsonschema
from test_json_schemas import INTEGER, check_samples, generate, write_byte_model

from cases.outcome import EQUAL, check_ends_well, refused_by_name

SAMPLES = 4
# One of these is valid if a drawn schema has a value at all, nearly always.
VALUES = [*range(-25, 56), -2.5, 0.5, 7.5, 3.25, None, True, False, "", *"abcxy", "ab", "ac", "bc", "abc", "abab", "abcd", [], {},
          [1], [1, 2], ["a"], [7, 8, 9], {"a": 1}, {"a": "ab"}, {"a": 2, "b": 2}]


def drawn_schema(chance, depth=0):
    """Keywords of any types beside each other, most of them of effect on the same values."""
    def below():
        return drawn_schema(chance, depth + 1)

    low, size = chance.randint(-20, 20) / chance.choice([1, 1, 4, 100]), chance.randint(0, 3)
    parts = {
        "type": chance.choice(["integer", "number", "string", "boolean", "object", "array", ["integer", "string"]]),
        "enum": chance.sample([-3, 0, 2, 7.5, "", "ab", "abcd", None, True], 5), "const": chance.choice([2, "ab", None]),
        "minimum": low, "maximum": low + chance.randint(-2, 30), "exclusiveMinimum": low - 1,
        "exclusiveMaximum": low + chance.randint(1, 30), "minLength": size, "maxLength": size + chance.randint(0, 2),
        "pattern": chance.choice(["^a", "b?c$", "^[ab]{1,4}$", "^\\S", "x|y"]), "minItems": size,
        "maxItems": size + chance.randint(0, 1), "additionalProperties": chance.choice([True, False, INTEGER]),
    }
    schema = {key: parts[key] for key in chance.sample(sorted(parts), chance.randint(1, 4))}
    if depth < 3:
        if chance.random() < 0.4:
            names = chance.sample("abcd", 2)
            schema["properties"] = {name: below() for name in names}
            schema["required"] = names[:chance.randint(0, 2)]
        if chance.random() < 0.2:
            schema["items"] = below()
        for key in ("allOf", "anyOf", "oneOf"):
            if chance.random() < 0.3:
                schema[key] = [below() for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.2:
            schema["$ref"] = f"#/$defs/{chance.choice('pq')}"
    if depth == 0:
        schema["$defs"] = {name: drawn_schema(chance, 3) for name in "pq"}
    return schema


def keywords(schema):
    """Names of the keywords in a schema and in its parts."""
    if isinstance(schema, dict):
        return set(schema).union(*map(keywords, schema.values()))
    return set().union(*map(keywords, schema)) if isinstance(schema, list) else set()


def check(chance, folder):
    schema = drawn_schema(chance)
    write_byte_model(folder)
    done = generate(folder, schema, SAMPLES)
    check_ends_well(done)
    if done.returncode == 0:
        check_samples(schema, done, SAMPLES)
        return EQUAL
    if "no value fits" in done.stderr:
        valid = [value for value in VALUES if jsonschema.Draft202012Validator(schema).is_valid(value)]
        assert not valid, f"{json.dumps(schema)} is refused, but has {valid}: {done.stderr}"
    # Keywords of texts alone mean a text, which a pattern may rule out.
    patterns = ["no text fits"] if "pattern" in keywords(schema) else []
    return refused_by_name(done, "no value fits", *patterns, *keywords(schema))
