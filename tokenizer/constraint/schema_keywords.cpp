#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/constraint/json_values.h"
#include "tokenizer/constraint/schema_branches.h"

namespace zoo {
namespace {

using Json = SchemaJson;

constexpr std::size_t kMostNames = 4096;  // which are compared pairwise
constexpr int kMostInt = std::numeric_limits<int>::max();

bool is_anything(const Json&) { return true; }
bool is_text(const Json& value) { return value.is_string(); }
bool is_list(const Json& value) { return value.is_array(); }
bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }
bool is_schemas(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, is_schema);
}
bool is_named_schemas(const Json& value) {
  return value.is_object() && value.size() <= kMostNames && std::ranges::all_of(value, is_schema);
}
bool is_names(const Json& value) {
  return value.is_array() && value.size() <= kMostNames && std::ranges::all_of(value, is_text);
}
bool is_most(const Json& value) { return value.is_number_integer() && value >= 0; }
bool is_least(const Json& value) { return is_most(value) && value <= kMostCountedItems; }
bool is_bound(const Json& value) {
  return value.is_number() &&
         (std::floor(value.get<double>()) == value.get<double>() || has_few_digits(value.get<double>()));
}
bool is_lower_bound(const Json& value) { return is_bound(value) && value <= kLargestInteger; }
bool is_upper_bound(const Json& value) { return is_bound(value) && value >= -kLargestInteger; }
bool is_any_string(const Json& value) { return value == Json(true) || value == Json{{"type", "string"}}; }
bool is_discriminator(const Json& value) {
  return value.is_object() && value.contains("propertyName") && value["propertyName"].is_string();
}
bool is_type(const Json& value) {
  static const Json known = {"string", "integer", "number", "boolean", "null", "array", "object"};
  return std::ranges::count(known, value) > 0;
}
bool is_types(const Json& value) {
  return is_type(value) || (value.is_array() && std::ranges::all_of(value, is_type));
}

enum class Role { constraint, combination, annotation };

// Keywords of one kind of value.
struct Keywords {
  std::vector<std::string_view> names;
  Role role;
  bool (*fits)(const Json&);
  std::string_view expected = "";
};

constexpr std::string_view kBound =
    "a number of at most 15 digits, or an integer that excludes only longer ones";
constexpr std::string_view kSchema = "a schema: an object, true or false";
constexpr std::string_view kSchemas = "a list of schemas";
constexpr std::string_view kNamed = "an object of at most 4096 schemas";
constexpr std::string_view kText = "a text";

const std::vector<Keywords> kKeywords{
    {{"type"}, Role::constraint, is_types, "the name of a type or a list of such"},
    {{"enum"}, Role::constraint, is_list, "a list"},
    {{"const"}, Role::constraint, is_anything},
    {{"properties"}, Role::constraint, is_named_schemas, kNamed},
    {{"required"}, Role::constraint, is_names, "a list of at most 4096 names"},
    {{"additionalProperties", "items"}, Role::constraint, is_schema, kSchema},
    {{"prefixItems"}, Role::constraint, is_schemas, kSchemas},
    {{"minItems", "minLength"}, Role::constraint, is_least, "an integer in [0, 10000]"},
    {{"maxItems", "maxLength"}, Role::constraint, is_most, "an integer, at least 0"},
    {{"pattern"}, Role::constraint, is_text, kText},
    {{"minimum", "exclusiveMinimum"}, Role::constraint, is_lower_bound, kBound},
    {{"maximum", "exclusiveMaximum"}, Role::constraint, is_upper_bound, kBound},
    {{"format", "$ref"}, Role::combination, is_text, kText},
    {{"discriminator"}, Role::combination, is_discriminator, "an object with a propertyName"},
    {{"allOf", "anyOf", "oneOf"}, Role::combination, is_schemas, kSchemas},
    {{"propertyNames"}, Role::annotation, is_any_string, R"({"type": "string"})"},
    {{"$defs", "definitions"}, Role::annotation, is_named_schemas, kNamed},
    {{"$schema", "$id", "$anchor", "contentEncoding", "contentMediaType"}, Role::annotation, is_text, kText},
    {{"contentSchema"}, Role::annotation, is_schema, kSchema},
    {{"$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"},
     Role::annotation,
     is_anything},
};
const Keywords kExtension{{"x-"}, Role::annotation, is_anything};  // of OpenAPI and others

// Expressions for some of the formats of JSON Schema 2020-12; none: an annotation. They match only texts of
// the format, but not all: no year below 1000, no 29th of February, no quoted names in addresses.
std::map<std::string, std::string> patterns_of_formats() {
  const std::string date =
      "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
      "02-(0[1-9]|1[0-9]|2[0-8])))";
  const std::string hour = "([01][0-9]|2[0-3]):[0-5][0-9]", time = hour + R"(:[0-5][0-9](\.[0-9]{1,9})?)";
  const std::string zoned = time + "(Z|[+-]" + hour + ")";
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?",
                    host = label + "(\\." + label + ")*";
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])", hex = "[0-9a-f]";
  return {{"date", date},
          {"time", zoned},
          {"date-time", date + "T" + zoned},
          {"hostname", host},
          {"email", R"([A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@)" + host},
          {"uuid", hex + "{8}(-" + hex + "{4}){3}-" + hex + "{12}"},
          {"ipv4", "(" + byte + "\\.){3}" + byte},
          {"uri", "[a-z][a-z0-9+.-]*:([A-Za-z0-9._~:/?#@!$&'()*+,;=-]|%[0-9A-F]{2})+"}};
}

const std::map<std::string, std::string> kPatternsOfFormats = patterns_of_formats();

const Keywords* find_keyword(std::string_view name) {
  for (const Keywords& keywords : kKeywords)
    if (std::ranges::count(keywords.names, name) > 0) return &keywords;
  return name.starts_with("x-") ? &kExtension : nullptr;
}

}  // namespace

void refuse_schema(const std::string& place, const std::string& what) {
  throw Error("the JSON schema at ", place, ": ", what);
}

void check_schema_keywords(const Json& schema, const std::string& place, bool is_root) {
  if (!schema.is_object()) refuse_schema(place, "expected an object, true or false, got " + schema.dump());
  for (const auto& [key, value] : schema.items()) {
    const Keywords* keyword = find_keyword(key);
    if (keyword == nullptr) refuse_schema(place, "the keyword '" + key + "' is not supported");
    if (!keyword->fits(value)) {
      std::string what = "'" + key + "' must be ";
      refuse_schema(place, what.append(keyword->expected) + ", got " + value.dump());
    }
    // References below it would be relative to it.
    if (key == "$id" && !is_root) refuse_schema(place, "'$id' is supported only at the root");
  }
}

Json own_constraints(const Json& schema) {
  Json own = Json::object();
  for (const auto& [key, value] : schema.items()) {
    const Keywords& keyword = *find_keyword(key);
    if (keyword.role != Role::constraint) continue;
    // What is generated stays below what is allowed.
    if (keyword.fits == is_lower_bound || keyword.fits == is_upper_bound)
      own[key] = std::clamp(value.get<double>(), -1.0 * kLargestInteger, 1.0 * kLargestInteger);
    else if (keyword.fits == is_most) own[key] = value > kMostInt ? kMostInt : value.get<std::int64_t>();
    else own[key] = value;
  }
  for (const char* key : {"type", "pattern"}) {
    if (own.contains(key) && !own[key].is_array()) own[key] = Json::array({own[key]});
  }
  const auto format = kPatternsOfFormats.find(schema.value("format", ""));
  if (format != kPatternsOfFormats.end()) own["pattern"].push_back("^(" + format->second + ")$");
  // Alternatives are told apart by it, also if a default lets it be absent.
  if (schema.contains("discriminator")) own["required"].push_back(schema["discriminator"]["propertyName"]);
  if (own.contains("const")) {
    const bool possible = !own.contains("enum") || std::ranges::count(own["enum"], own["const"]) > 0;
    own["enum"] = possible ? Json::array({own["const"]}) : Json::array();
    own.erase("const");
  }
  return own;
}

}  // namespace zoo
