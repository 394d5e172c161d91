#pragma once

#include <string>

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

}  // namespace zoo
