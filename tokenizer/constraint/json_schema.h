#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// A pattern of the JSON texts that a schema allows, written without spaces and with properties in the order
/// of the schema. Supports this part of JSON Schema (2020-12):
///
///   type (one or a list), enum, const, anyOf, and oneOf whose alternatives are of different types;
///   properties, required, additionalProperties (others are never written);
///   items, minItems, maxItems;
///   minLength, maxLength (in characters), pattern (not together with the lengths);
///   minimum, maximum, exclusiveMinimum, exclusiveMaximum of integers;
///   $ref to "#/$defs/…" or "#/definitions/…", not recursive;
///   and, without effect: $schema, $id, $defs, definitions, title, description, default, examples, $comment.
///
/// Integers have at most 15 digits, as have the two parts of a number. An unrestricted value is a string,
/// number, boolean or null. Throws Error naming any other keyword and its path.
PatternPtr json_schema_pattern(const nlohmann::ordered_json& schema);

}  // namespace zoo
