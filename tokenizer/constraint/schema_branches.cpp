#include "tokenizer/constraint/schema_branches.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "data/base/lines.h"
#include "tokenizer/constraint/byte_automaton.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Json = SchemaJson;

constexpr std::size_t kMostBranches = 1000;
constexpr int kMostSchemas = 100'000;
constexpr std::size_t kMostMerged = 5'000'000;  // of work_of(): some seconds

// For a quick search of a long list. Ignores the order of properties; 1 equals 1.0.
std::set<nlohmann::json> set_of(const Json& list) { return {list.begin(), list.end()}; }

// The work of a merge: values, texts by their length, and objects, whose members are found one by one.
std::size_t work_of(const Json& value) {
  constexpr std::size_t kSize = 64;
  if (value.is_string()) return 1 + value.get_ref<const std::string&>().size() / kSize;
  std::size_t work = 1 + (value.is_object() ? value.size() * value.size() / kSize : 0);
  if (value.is_structured())
    for (const Json& part : value) work += work_of(part);
  return work;
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number() && value == std::floor(value.get<double>());
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return type == "array" ? value.is_array() : value.is_object();
}

// True if no value satisfies both the lower and the upper limit of two keywords.
bool crossed(const Json& branch, const char* least, const char* most) {
  return branch.contains(least) && branch.contains(most) && branch[most] < branch[least];
}

bool size_fits(const Json& branch, const char* least, const char* most, std::size_t size) {
  return !(branch.contains(least) && size < branch[least].get<std::size_t>()) &&
         !(branch.contains(most) && size > branch[most].get<std::size_t>());
}

// The values without texts that a pattern rules out. An automaton may have 67 MB: one at a time.
Json matches_of(const Json& patterns, Json values) {
  const auto everything = zoo::one_of({{0, 0xD7FF}, {0xE000, 0x10FFFF}});
  for (const Json& expression : patterns) {
    if (std::ranges::none_of(values, [](const Json& value) { return value.is_string(); })) break;
    const ByteAutomaton pattern(searched_text(expression.get<std::string>(), everything));
    Json kept = Json::array();
    for (const Json& value : values)
      if (!value.is_string() || pattern.fits(value.get_ref<const std::string&>())) kept.push_back(value);
    values = std::move(kept);
  }
  return values;
}

bool number_fits(const Json& branch, const Json& number) {
  return !(branch.contains("minimum") && number < branch["minimum"]) &&
         !(branch.contains("maximum") && number > branch["maximum"]) &&
         !(branch.contains("exclusiveMinimum") && number <= branch["exclusiveMinimum"]) &&
         !(branch.contains("exclusiveMaximum") && number >= branch["exclusiveMaximum"]);
}

// True if a value of `enum` fits the other keywords but `pattern`.
bool value_fits(const Json& branch, const Json& value, const std::string& place) {
  if (branch.contains("type")) {
    const auto fits = [&](const Json& type) { return is_of_type(value, type.get<std::string>()); };
    if (std::ranges::none_of(branch["type"], fits)) return false;
  }
  const auto refuse_beside = [&](const char* key) {
    if (branch.contains(key))
      refuse_schema(place, std::string("an array or object in 'enum' or 'const' beside '") + key +
                               "' is not supported");
  };
  if (value.is_array()) {
    refuse_beside("items");
    refuse_beside("prefixItems");
    return size_fits(branch, "minItems", "maxItems", value.size());
  }
  if (value.is_object()) {
    refuse_beside("properties");
    refuse_beside("additionalProperties");
    const Json required = branch.value("required", Json::array());
    return std::ranges::all_of(required,
                               [&](const Json& name) { return value.contains(name.get<std::string>()); });
  }
  if (value.is_string())
    return size_fits(branch, "minLength", "maxLength", count_characters(value.get_ref<const std::string&>()));
  return !value.is_number() || number_fits(branch, value);
}

bool type_is_empty(const Json& branch, const std::string& type) {
  if (type == "string") return crossed(branch, "minLength", "maxLength");
  if (type == "array") return crossed(branch, "minItems", "maxItems");
  if (type != "integer" && type != "number") return false;
  return number_range(branch, type).is_empty();
}

// True for keywords of arrays or texts that only values of another type fit.
bool needs_other_type(const Json& branch) {
  const bool has_type = branch.contains("type") || branch.contains("enum") || branch.contains("properties") ||
                        branch.contains("required");
  return !has_type && (type_is_empty(branch, "array") || type_is_empty(branch, "string"));
}

// Drops values that the keywords of a branch rule out; nothing if none is left.
std::optional<Json> satisfiable(Json branch, const std::string& place) {
  if (needs_other_type(branch)) branch["type"] = {"string", "number", "boolean", "null"};
  if (branch.contains("enum")) {
    Json kept = Json::array();
    for (const Json& value : branch["enum"])
      if (value_fits(branch, value, place)) kept.push_back(value);
    kept = matches_of(branch.value("pattern", Json::array()), std::move(kept));
    if (kept.empty()) return std::nullopt;
    branch["enum"] = kept;
  } else if (branch.contains("type")) {
    Json kept = Json::array();
    for (const Json& type : branch["type"])
      if (!type_is_empty(branch, type.get<std::string>())) kept.push_back(type);
    if (kept.empty()) return std::nullopt;
    branch["type"] = kept;
  }
  return branch;
}

Json union_of(Json a, const Json& b) {
  std::set<nlohmann::json> known = set_of(a);
  for (const Json& one : b)
    if (known.emplace(one).second) a.push_back(one);
  return a;
}

// The values of `a` that are in `b`; of types, every integer is a number.
Json values_in_both(const Json& a, const Json& b, bool are_types = false) {
  const std::set<nlohmann::json> known = set_of(b);
  Json both = Json::array();
  for (const Json& value : a)
    if (known.contains(nlohmann::json(value)) ||
        (are_types && value == "integer" && known.contains("number")))
      both.push_back(value);
  return both;
}

// A property that one of two branches does not list falls under the branch's additionalProperties.
Json merged_properties(const Json& a, const Json& b) {
  Json all = Json::object();
  const auto add = [&all](const Json& here, const Json& there) {
    if (!here.contains("properties")) return;
    for (const auto& [name, schema] : here["properties"].items()) {
      if (all.contains(name)) continue;
      const bool in_both = there.contains("properties") && there["properties"].contains(name);
      all[name] = schema;
      if (in_both || there.contains("additionalProperties"))
        all[name] = {{"allOf", Json::array({schema, in_both ? there["properties"][name]
                                                            : there["additionalProperties"]})}};
    }
  };
  add(a, b);
  add(b, a);
  return all;
}

Json merged_values(const std::string& key, const Json& a, const Json& b) {
  if (key == "type") return union_of(values_in_both(a, b, true), values_in_both(b, a, true));
  if (key == "enum") return values_in_both(a, b);
  if (key == "required" || key == "pattern") return union_of(a, b);
  if (key == "items" || key == "additionalProperties") return {{"allOf", Json::array({a, b})}};
  return key.starts_with("min") || key == "exclusiveMinimum" ? std::max(a, b) : std::min(a, b);
}

// The intersection of both branches.
std::optional<Json> merged(const Json& a, const Json& b, const std::string& place) {
  const auto items = [](const Json& one) { return one.contains("items") || one.contains("prefixItems"); };
  if (items(a) && items(b) && (a.contains("prefixItems") || b.contains("prefixItems")))
    refuse_schema(place, "'prefixItems' beside the items of another part of the schema is not supported");
  Json both = a;
  if (a.contains("properties") || b.contains("properties")) both["properties"] = merged_properties(a, b);
  for (const auto& [key, value] : b.items())
    if (key != "properties") both[key] = a.contains(key) ? merged_values(key, a[key], value) : value;
  return satisfiable(std::move(both), place);
}

// Without percent escapes; nothing if one is malformed.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    const auto byte = number_in<unsigned>(digits, 16);
    if (!byte || digits.size() < 2) return std::nullopt;
    decoded += static_cast<char>(*byte);
    i += 2;
  }
  return decoded;
}

std::string inside(const std::string& place, const char* key, std::size_t number) {
  return place + "/" + key + "/" + std::to_string(number);
}

}  // namespace

NumberRange number_range(const Json& branch, const std::string& type) {
  NumberRange range{.least = branch.value("minimum", -1.0 * kLargestInteger),
                    .most = branch.value("maximum", 1.0 * kLargestInteger)};
  // Of two bounds at the same number, the open one is stricter.
  if (branch.contains("exclusiveMinimum") && branch["exclusiveMinimum"] >= range.least)
    range.least = branch["exclusiveMinimum"].get<double>(), range.least_is_open = true;
  if (branch.contains("exclusiveMaximum") && branch["exclusiveMaximum"] <= range.most)
    range.most = branch["exclusiveMaximum"].get<double>(), range.most_is_open = true;
  if (type != "integer") return range;
  return {.least = range.least_is_open ? std::floor(range.least) + 1 : std::ceil(range.least),
          .most = range.most_is_open ? std::ceil(range.most) - 1 : std::floor(range.most)};
}

SchemaBranches::Branches SchemaBranches::of(const Json& schema, const std::string& place) {
  if (schema.is_boolean()) return schema.get<bool>() ? Branches{Json::object()} : Branches{};
  if (++read_ > kMostSchemas)
    refuse_schema(place, "'$ref', 'allOf', 'anyOf' and 'oneOf' repeat too many schemas");
  if (++depth_ > kDeepest) refuse_schema(place, "schemas are nested too deeply");
  check_schema_keywords(schema, place, &schema == &root_);
  Branches branches;
  if (auto own = satisfiable(own_constraints(schema), place)) branches.push_back(std::move(*own));
  if (schema.contains("$ref")) {
    const auto reference = schema["$ref"].get<std::string>();
    branches = product(branches, of(target(reference, place), reference), place);
  }
  if (schema.contains("allOf")) {
    for (std::size_t i = 0; i < schema["allOf"].size(); ++i)
      branches = product(branches, of(schema["allOf"][i], inside(place, "allOf", i)), place);
  }
  for (const char* key : {"anyOf", "oneOf"})
    if (schema.contains(key)) branches = alternatives(schema[key], key, branches, place);
  --depth_;
  return branches;
}

// Refuses a schema whose merges would take too long.
void SchemaBranches::count_merge(const Json& a, const Json& b, const std::string& place) {
  merged_ += work_of(a) + work_of(b);
  if (merged_ > kMostMerged)
    refuse_schema(place, "'$ref', 'allOf', 'anyOf' and 'oneOf' combine too many or too large schemas");
}

SchemaBranches::Branches SchemaBranches::product(const Branches& a, const Branches& b,
                                                 const std::string& place) {
  Branches all;
  for (const Json& one : a) {
    for (const Json& other : b) {
      count_merge(one, other, place);
      if (auto both = merged(one, other, place)) all.push_back(std::move(*both));
      if (all.size() > kMostBranches)
        refuse_schema(place, "'allOf', 'anyOf' and 'oneOf' give too many alternatives");
    }
  }
  return all;
}

SchemaBranches::Branches SchemaBranches::alternatives(const Json& list, const char* key,
                                                      const Branches& branches, const std::string& place) {
  Branches all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Branches more = product(branches, of(list[i], inside(place, key, i)), place);
    const auto may_hold_at_once = [&](const Json& one) {
      return std::ranges::any_of(all,
                                 [&](const Json& before) { return !exclude_each_other(one, before, place); });
    };
    if (key == std::string_view("oneOf") && std::ranges::any_of(more, may_hold_at_once))
      refuse_schema(place, "'oneOf' whose alternatives may hold at once is not supported; use 'anyOf'");
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

bool SchemaBranches::exclude_each_other(Json a, Json b, const std::string& place) {
  // The supported expressions match a subset of a validator's, so they prove nothing here.
  a.erase("pattern");
  b.erase("pattern");
  count_merge(a, b, place);
  const auto both = merged(a, b, place);
  if (!both) return true;
  if (!both->contains("type") || both->at("type") != Json::array({"object"})) return false;
  const Json properties = both->value("properties", Json::object());
  const Json required = both->value("required", Json::array());
  return std::ranges::any_of(required, [&](const Json& name) {
    const auto property = properties.find(name.get<std::string>());
    return property != properties.end() && of(*property, place + "/properties/" + property.key()).empty();
  });
}

// What a reference names: a JSON pointer (RFC 6901) as the fragment of a URI, "#/$defs/a~1b%25". Null if it
// is malformed, or nothing is there.
const Json* SchemaBranches::find(const std::string& reference) const {
  if (!reference.starts_with('#')) return nullptr;
  const std::optional<std::string> decoded = percent_decoded(std::string_view(reference).substr(1));
  if (!decoded) return nullptr;
  try {
    const Json::json_pointer pointer(*decoded);
    return root_.contains(pointer) ? &root_.at(pointer) : nullptr;
  } catch (const nlohmann::json::exception&) {  // malformed
    return nullptr;
  }
}

const Json& SchemaBranches::target(const std::string& reference, const std::string& place) {
  const Json* found = find(reference);
  if (found == nullptr)
    refuse_schema(place,
                  "'$ref' to '" + reference + "': expected '#/…', a path to a schema in the same file");
  if (!finite_.contains(found)) {
    std::set<const Json*> seen;
    if (leads_to(*found, found, seen))
      refuse_schema(place, "'$ref' to '" + reference + "' leads back to itself, which is not supported");
    finite_.insert(found);
  }
  return *found;
}

// True if a reference inside `value`, or inside the target of such a reference, leads to `goal`.
bool SchemaBranches::leads_to(const Json& value, const Json* goal, std::set<const Json*>& seen,
                              int depth) const {
  constexpr int kDeepestWalk = 2'000;  // parts and references inside one another
  if (!value.is_structured()) return false;
  if (depth > kDeepestWalk) refuse_schema("#", "schemas are nested too deeply");
  if (value.is_object() && value.contains("$ref") && value["$ref"].is_string()) {
    const Json* next = find(value["$ref"].get<std::string>());
    if (next == goal) return true;
    if (next != nullptr && seen.insert(next).second && leads_to(*next, goal, seen, depth + 1)) return true;
  }
  return std::ranges::any_of(value, [&](const Json& part) { return leads_to(part, goal, seen, depth + 1); });
}

}  // namespace zoo
