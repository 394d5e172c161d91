#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/constraint/json_values.h"

namespace zoo {

using SchemaJson = nlohmann::ordered_json;

inline constexpr int kMostCountedItems = 10'000;  // or characters, that a schema may ask for

/// Throws Error "the JSON schema at PLACE: WHAT".
[[noreturn]] void refuse_schema(const std::string& place, const std::string& what);

/// Throws Error naming the first keyword that is not supported or whose value has the wrong type.
void check_schema_keywords(const SchemaJson& schema, const std::string& place, bool is_root);

/// A schema's direct constraints, without $ref, allOf, anyOf, oneOf and annotations, normalised: `type` and
/// `pattern` are lists, `const` is an `enum` of one value, and bounds have at most 15 digits.
SchemaJson own_constraints(const SchemaJson& schema);

/// The numbers, or with the type "integer" the integers, that a branch's bounds allow.
NumberRange number_range(const SchemaJson& branch, const std::string& type);

/// A schema as alternatives ("branches") of which a value must fit one. $ref, allOf, anyOf and oneOf are
/// resolved and their sibling keywords merged into every branch, so that a branch is one object of
/// own_constraints(). Branches that no value fits are dropped.
class SchemaBranches {
 public:
  static constexpr int kDeepest = 200;  // schemas inside one another

  explicit SchemaBranches(const SchemaJson& root) : root_(root) {}

  /// Throws Error naming the unsupported keyword and its location: recursive references, and oneOf whose
  /// alternatives do not provably exclude each other; and a combination of too many or too large schemas.
  std::vector<SchemaJson> of(const SchemaJson& schema, const std::string& place);

 private:
  using Branches = std::vector<SchemaJson>;

  const SchemaJson* find(const std::string& reference) const;
  const SchemaJson& target(const std::string& reference, const std::string& place);
  bool leads_to(const SchemaJson& value, const SchemaJson* goal, std::set<const SchemaJson*>& seen,
                int depth = 0) const;
  void count_merge(const SchemaJson& a, const SchemaJson& b, const std::string& place);
  Branches product(const Branches& a, const Branches& b, const std::string& place);
  Branches alternatives(const SchemaJson& list, const char* key, const Branches& branches,
                        const std::string& place);
  bool exclude_each_other(SchemaJson a, SchemaJson b, const std::string& place);

  const SchemaJson& root_;
  std::set<const SchemaJson*> finite_;  // targets of references that do not lead back to themselves
  int read_ = 0, depth_ = 0;
  std::size_t merged_ = 0;  // work of all merges so far
};

}  // namespace zoo
