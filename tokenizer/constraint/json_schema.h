#pragma once

/// @file
/// Use:
///
///     const auto schema = nlohmann::ordered_json::parse(R"({"type": "integer", "minimum": 0})");
///     const zoo::ByteAutomaton automaton(zoo::json_schema_pattern(schema));  // byte_automaton.h

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// A pattern of the JSON texts that a schema allows, written without spaces and with properties in the order
/// of the schema. Supports this part of JSON Schema (2020-12), in any combination:
///
///   type (one or a list), enum, const, true and false as schemas;
///   allOf, anyOf, and oneOf whose alternatives exclude each other by type, value, bound or required
///   property; discriminator, whose property is then required; properties, required, additionalProperties
///   (beside properties, others are never written unless required; an object without both has any, with
///   arrays and objects to a small depth); items, prefixItems, minItems, maxItems; minLength, maxLength (in
///   characters), pattern; format, of date, time, date-time, hostname, email, uuid, ipv4 and uri; minimum,
///   maximum, exclusiveMinimum, exclusiveMaximum, of at most 15 digits; $ref to a path in the same file
///   ("#/$defs/…"), not recursive; and, without effect: other formats, $schema, $id (at the root), $anchor,
///   $defs, definitions, title, description, default, examples, deprecated, readOnly, writeOnly, $comment,
///   contentEncoding, contentMediaType, contentSchema, propertyNames of any string, and x-….
///
/// Integers have at most 15 digits, and so have the two parts of a number; where the upper limit of
/// a text or list is above 10,000, 2,000 characters or items are written at most. An unrestricted value is a
/// string, number, boolean or null; one with keywords of only objects, arrays or strings has that type.
/// Throws Error with the location and name of any other keyword, and of one whose value has the wrong type.
PatternPtr json_schema_pattern(const nlohmann::ordered_json& schema);

}  // namespace zoo
