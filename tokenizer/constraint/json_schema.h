#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// The JSON texts that a schema allows, written without spaces and with an object's properties in the order
/// of the schema, as a pattern. Of JSON Schema (2020-12) it knows:
///
///   type (one or a list), enum, const, anyOf, and oneOf whose alternatives are of different types;
///   properties, required, additionalProperties (others are never written);
///   items, minItems, maxItems;
///   minLength, maxLength (in characters), pattern (not beside the lengths);
///   minimum, maximum, exclusiveMinimum, exclusiveMaximum of integers;
///   $ref to "#/$defs/…" or "#/definitions/…" that does not lead back to itself; and what says nothing about
///   validity: $schema, $id, $defs, definitions, title, description, default, examples, $comment.
///
/// Integers have at most 15 digits, and so have the two parts of a number. Where nothing is said, a value is
/// a string, number, boolean or null. Throws Error naming any other keyword, and where it stands.
PatternPtr json_schema_pattern(const nlohmann::ordered_json& schema);

}  // namespace zoo
