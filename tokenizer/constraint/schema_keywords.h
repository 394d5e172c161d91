#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

using SchemaJson = nlohmann::ordered_json;

/// Throws Error "the JSON schema at PLACE: WHAT".
[[noreturn]] void refuse_schema(const std::string& place, const std::string& what);

/// Throws Error naming the first keyword that is not supported or whose value has the wrong type.
void check_schema_keywords(const SchemaJson& schema, const std::string& place, bool is_root);

/// A schema's direct constraints, without $ref, allOf, anyOf, oneOf and annotations, normalised: `type` and
/// `pattern` are lists, `const` is an `enum` of one value, and bounds are integers.
SchemaJson own_constraints(const SchemaJson& schema);

/// The value at a JSON pointer (RFC 6901) written as the fragment of a URI: "/$defs/a~1b%25". Null if the
/// pointer is malformed or nothing is there.
const nlohmann::ordered_json* find_by_pointer(const nlohmann::ordered_json& root, std::string_view fragment);

}  // namespace zoo
