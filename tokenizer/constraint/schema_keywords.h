#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

using SchemaJson = nlohmann::ordered_json;

/// Throws Error "the JSON schema at PLACE: WHAT".
[[noreturn]] void refuse_schema(const std::string& place, const std::string& what);

/// Throws Error naming the first keyword that is not supported or whose value is of the wrong kind.
void check_schema_keywords(const SchemaJson& schema, const std::string& place, bool is_root);

/// The constraints of a schema itself, without $ref, allOf, anyOf, oneOf and annotations, in one spelling:
/// `type` and `pattern` are lists, `const` is an `enum` of one value, and bounds are integers.
SchemaJson own_constraints(const SchemaJson& schema);

}  // namespace zoo
