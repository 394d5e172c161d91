#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "tokenizer/constraint/schema_branches.h"

namespace zoo {
namespace {

using Json = SchemaJson;

constexpr std::size_t kMostNames = 4096;  // which are compared pairwise

bool is_anything(const Json&) { return true; }
bool is_text(const Json& value) { return value.is_string(); }
bool is_list(const Json& value) { return value.is_array(); }
bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }
bool is_schemas(const Json& value) {
  return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_schema);
}
bool is_named_schemas(const Json& value) {
  return value.is_object() && value.size() <= kMostNames &&
         std::all_of(value.begin(), value.end(), is_schema);
}
bool is_names(const Json& value) {
  return value.is_array() && value.size() <= kMostNames && std::all_of(value.begin(), value.end(), is_text);
}
bool is_count(const Json& value) { return value.is_number_integer() && value >= 0 && value <= 10000; }
bool is_bound(const Json& value) {
  constexpr double kLargest = 999'999'999'999'999;  // exact as a double
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  return std::abs(number) <= kLargest && std::floor(number) == number;
}
bool is_type(const Json& value) {
  static const Json known = {"string", "integer", "number", "boolean", "null", "array", "object"};
  return std::find(known.begin(), known.end(), value) != known.end();
}
bool is_types(const Json& value) {
  return is_type(value) || (value.is_array() && std::all_of(value.begin(), value.end(), is_type));
}

enum class Role { constraint, combination, annotation };

struct Keyword {
  std::string_view name;
  Role role;
  bool (*fits)(const Json&);
  std::string_view expected;
};

constexpr std::string_view kCount = "an integer in [0, 10000]";
constexpr std::string_view kBound = "an integer of at most 15 digits";
constexpr std::string_view kSchema = "a schema: an object, true or false";
constexpr std::string_view kSchemas = "a list of schemas";
constexpr std::string_view kNamed = "an object of at most 4096 schemas";
constexpr std::string_view kText = "a text";

constexpr Keyword kKeywords[] = {
    {"type", Role::constraint, is_types, "the name of a type or a list of such"},
    {"enum", Role::constraint, is_list, "a list"},
    {"const", Role::constraint, is_anything, ""},
    {"properties", Role::constraint, is_named_schemas, kNamed},
    {"required", Role::constraint, is_names, "a list of at most 4096 names"},
    {"additionalProperties", Role::constraint, is_schema, kSchema},
    {"items", Role::constraint, is_schema, kSchema},
    {"minItems", Role::constraint, is_count, kCount},
    {"maxItems", Role::constraint, is_count, kCount},
    {"minLength", Role::constraint, is_count, kCount},
    {"maxLength", Role::constraint, is_count, kCount},
    {"pattern", Role::constraint, is_text, kText},
    {"minimum", Role::constraint, is_bound, kBound},
    {"maximum", Role::constraint, is_bound, kBound},
    {"exclusiveMinimum", Role::constraint, is_bound, kBound},
    {"exclusiveMaximum", Role::constraint, is_bound, kBound},
    {"$ref", Role::combination, is_text, kText},
    {"allOf", Role::combination, is_schemas, kSchemas},
    {"anyOf", Role::combination, is_schemas, kSchemas},
    {"oneOf", Role::combination, is_schemas, kSchemas},
    {"$defs", Role::annotation, is_named_schemas, kNamed},
    {"definitions", Role::annotation, is_named_schemas, kNamed},
    {"$schema", Role::annotation, is_text, kText},
    {"$id", Role::annotation, is_text, kText},
    {"$anchor", Role::annotation, is_text, kText},
    {"$comment", Role::annotation, is_anything, ""},
    {"title", Role::annotation, is_anything, ""},
    {"description", Role::annotation, is_anything, ""},
    {"default", Role::annotation, is_anything, ""},
    {"examples", Role::annotation, is_anything, ""},
    {"deprecated", Role::annotation, is_anything, ""},
    {"readOnly", Role::annotation, is_anything, ""},
    {"writeOnly", Role::annotation, is_anything, ""},
};

const Keyword* find_keyword(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                   [&](const Keyword& keyword) { return keyword.name == name; });
  return found == std::end(kKeywords) ? nullptr : found;
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

// "~1" is "/", "~0" is "~"; nothing for another ~.
std::optional<std::string> unescaped(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    const char code = ++i < token.size() ? token[i] : ' ';
    if (code != '0' && code != '1') return std::nullopt;
    text += code == '0' ? '~' : '/';
  }
  return text;
}

const nlohmann::ordered_json* child(const nlohmann::ordered_json& value, const std::string& token) {
  if (value.is_object()) {
    const auto found = value.find(token);
    return found == value.end() ? nullptr : &*found;
  }
  const auto index = number_in<std::size_t>(token);
  return value.is_array() && index && *index < value.size() ? &value[*index] : nullptr;
}

}  // namespace

void refuse_schema(const std::string& place, const std::string& what) {
  throw Error("the JSON schema at ", place, ": ", what);
}

void check_schema_keywords(const Json& schema, const std::string& place, bool is_root) {
  if (!schema.is_object()) refuse_schema(place, "expected an object, true or false, got " + schema.dump());
  for (const auto& [key, value] : schema.items()) {
    const Keyword* keyword = find_keyword(key);
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
    const Keyword& keyword = *find_keyword(key);
    if (keyword.role == Role::constraint)
      own[key] = keyword.fits == is_bound ? Json(value.get<std::int64_t>()) : value;
  }
  for (const char* key : {"type", "pattern"}) {
    if (own.contains(key) && !own[key].is_array()) own[key] = Json::array({own[key]});
  }
  if (own.contains("const")) {
    const bool possible = !own.contains("enum") || std::find(own["enum"].begin(), own["enum"].end(),
                                                             own["const"]) != own["enum"].end();
    own["enum"] = possible ? Json::array({own["const"]}) : Json::array();
    own.erase("const");
  }
  return own;
}

const nlohmann::ordered_json* find_by_pointer(const nlohmann::ordered_json& root, std::string_view fragment) {
  const std::optional<std::string> decoded = percent_decoded(fragment);
  if (!decoded) return nullptr;
  std::string_view rest = *decoded;
  const nlohmann::ordered_json* here = &root;
  while (here != nullptr && !rest.empty()) {
    if (rest[0] != '/') return nullptr;
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    const std::optional<std::string> token = unescaped(rest.substr(1, end - 1));
    here = token ? child(*here, *token) : nullptr;
    rest.remove_prefix(end);
  }
  return here;
}

}  // namespace zoo
