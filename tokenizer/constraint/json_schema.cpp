#include "tokenizer/constraint/json_schema.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/constraint/json_values.h"
#include "tokenizer/constraint/regular_expression.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargestInteger = 999'999'999'999'999;  // exact as a double too
constexpr int kDigits = 15;

constexpr std::string_view kKeywords[] = {"type",
                                          "enum",
                                          "const",
                                          "anyOf",
                                          "oneOf",
                                          "properties",
                                          "required",
                                          "additionalProperties",
                                          "items",
                                          "minItems",
                                          "maxItems",
                                          "minLength",
                                          "maxLength",
                                          "pattern",
                                          "minimum",
                                          "maximum",
                                          "exclusiveMinimum",
                                          "exclusiveMaximum",
                                          "$ref",
                                          "$schema",
                                          "$id",
                                          "$defs",
                                          "definitions",
                                          "title",
                                          "description",
                                          "default",
                                          "examples",
                                          "$comment"};

class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  PatternPtr read(const Json& schema, const std::string& place);

 private:
  [[noreturn]] static void refuse(const std::string& place, const std::string& what) {
    throw Error("the JSON schema at ", place, ": ", what);
  }

  static int count(const Json& schema, const char* key, int otherwise, const std::string& place);
  static std::int64_t bound(const Json& schema, const char* key, std::int64_t otherwise,
                            const std::string& place);

  PatternPtr reference(const std::string& target, const std::string& place);
  PatternPtr alternatives(const Json& schema, const char* key, const std::string& place);
  PatternPtr value(const Json& schema, const std::string& type, const std::string& place);
  PatternPtr string(const Json& schema, const std::string& place) const;
  PatternPtr integer(const Json& schema, const std::string& place) const;
  PatternPtr number(const Json& schema, const std::string& place) const;
  PatternPtr array(const Json& schema, const std::string& place);
  PatternPtr object(const Json& schema, const std::string& place);

  const Json& root_;
  std::vector<std::string> open_;  // references that are being resolved
};

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return type == "array" ? value.is_array() : value.is_object();
}

std::vector<std::string> types_of(const Json& schema, const std::string& place) {
  static const std::set<std::string> known{"string", "integer", "number", "boolean",
                                           "null",   "array",   "object"};
  std::vector<std::string> types;
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    const Json list = type.is_array() ? type : Json::array({type});
    for (const Json& one : list) {
      if (!one.is_string() || known.count(one.get<std::string>()) == 0)
        throw Error("the JSON schema at ", place, ": 'type' is ", one.dump(), ", which is not a type");
      types.push_back(one.get<std::string>());
    }
  } else if (schema.contains("properties") || schema.contains("required")) {
    types = {"object"};
  } else if (schema.contains("items") || schema.contains("minItems") || schema.contains("maxItems")) {
    types = {"array"};
  } else if (schema.contains("pattern") || schema.contains("minLength") || schema.contains("maxLength")) {
    types = {"string"};
  } else {
    types = {"string", "number", "boolean", "null"};
  }
  return types;
}

PatternPtr SchemaReader::read(const Json& schema, const std::string& place) {
  if (schema.is_boolean() && schema.get<bool>()) return read(Json::object(), place);
  if (!schema.is_object()) refuse(place, "expected an object, got " + schema.dump());
  for (const auto& [key, unused] : schema.items()) {
    if (std::find(std::begin(kKeywords), std::end(kKeywords), key) == std::end(kKeywords))
      refuse(place, "the keyword '" + key + "' is not supported");
  }
  if (schema.contains("$ref")) {
    if (!schema["$ref"].is_string()) refuse(place, "'$ref' must be a text");
    return reference(schema["$ref"].get<std::string>(), place);
  }
  const auto types = types_of(schema, place);
  if (schema.contains("enum") || schema.contains("const")) {
    const Json values = schema.contains("const") ? Json::array({schema["const"]}) : schema["enum"];
    if (!values.is_array()) refuse(place, "'enum' must be a list");
    std::vector<PatternPtr> parts;
    for (const Json& one : values) {
      const bool fits =
          !schema.contains("type") ||
          std::any_of(types.begin(), types.end(), [&](const auto& type) { return is_of_type(one, type); });
      if (fits) parts.push_back(literal(one.dump()));
    }
    return choice(std::move(parts));
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    if (schema.contains(key)) return alternatives(schema, key, place);
  }
  std::vector<PatternPtr> parts;
  for (const std::string& type : types) parts.push_back(value(schema, type, place));
  return choice(std::move(parts));
}

PatternPtr SchemaReader::reference(const std::string& target, const std::string& place) {
  if (target.rfind("#/", 0) != 0) refuse(place, "'$ref' to '" + target + "': only '#/$defs/…' is supported");
  if (std::find(open_.begin(), open_.end(), target) != open_.end())
    refuse(place, "'$ref' to '" + target + "' leads back to itself, which is not supported");
  const Json::json_pointer pointer(target.substr(1));
  if (!root_.contains(pointer)) refuse(place, "'$ref' to '" + target + "', which is not there");
  open_.push_back(target);
  PatternPtr found = read(root_.at(pointer), target);
  open_.pop_back();
  return found;
}

PatternPtr SchemaReader::alternatives(const Json& schema, const char* key, const std::string& place) {
  if (!schema[key].is_array() || schema[key].empty())
    refuse(place, std::string("'") + key + "' must be a list of schemas");
  for (const char* beside : {"type", "properties", "items", "required", "anyOf"}) {
    if (std::string(beside) != key && schema.contains(beside))
      refuse(place, std::string("'") + key + "' beside '" + beside + "' is not supported");
  }
  std::vector<PatternPtr> parts;
  std::set<std::string> seen;
  for (const Json& one : schema[key]) {
    if (std::string(key) == "oneOf") {
      const auto types = one.is_object() ? types_of(one, place) : std::vector<std::string>{"?", "?"};
      for (const std::string& type : types) {
        if (!seen.insert(type == "integer" ? "number" : type).second || !one.contains("type"))
          refuse(place,
                 "'oneOf' whose alternatives are not of different types is not supported; use 'anyOf'");
      }
    }
    parts.push_back(read(one, place + "/" + key + "/" + std::to_string(parts.size())));
  }
  return choice(std::move(parts));
}

PatternPtr SchemaReader::value(const Json& schema, const std::string& type, const std::string& place) {
  if (type == "string") return string(schema, place);
  if (type == "integer") return integer(schema, place);
  if (type == "number") return number(schema, place);
  if (type == "boolean") return choice({literal("true"), literal("false")});
  if (type == "null") return literal("null");
  return type == "array" ? array(schema, place) : object(schema, place);
}

int SchemaReader::count(const Json& schema, const char* key, int otherwise, const std::string& place) {
  if (!schema.contains(key)) return otherwise;
  const Json& value = schema[key];
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > 10000)
    refuse(place, std::string("'") + key + "' must be in [0, 10000], got " + value.dump());
  return value.get<int>();
}

std::int64_t SchemaReader::bound(const Json& schema, const char* key, std::int64_t otherwise,
                                 const std::string& place) {
  if (!schema.contains(key)) return otherwise;
  const Json& value = schema[key];
  if (!value.is_number_integer() || std::abs(value.get<double>()) > static_cast<double>(kLargestInteger))
    refuse(place, std::string("'") + key + "' must be an integer of at most 15 digits, got " + value.dump());
  return value.get<std::int64_t>();
}

PatternPtr SchemaReader::string(const Json& schema, const std::string& place) const {
  const int least = count(schema, "minLength", 0, place);
  const int most = count(schema, "maxLength", Pattern::kEndless, place);
  if (most != Pattern::kEndless && most < least) refuse(place, "'maxLength' is below 'minLength'");
  const PatternPtr any = one_of(complement({{0, 0x1F}}));
  if (!schema.contains("pattern")) return json_string_of(repeat(any, least, most));
  if (schema.contains("minLength") || schema.contains("maxLength"))
    refuse(place, "'pattern' beside 'minLength' or 'maxLength' is not supported");
  if (!schema["pattern"].is_string()) refuse(place, "'pattern' must be a text");
  const RegularExpression expression = parse_regular_expression(schema["pattern"].get<std::string>());
  std::vector<PatternPtr> parts;
  if (!expression.begins) parts.push_back(repeat(any, 0));
  parts.push_back(expression.pattern);
  if (!expression.ends) parts.push_back(repeat(any, 0));
  return json_string_of(sequence(std::move(parts)));
}

PatternPtr SchemaReader::integer(const Json& schema, const std::string& place) const {
  const std::int64_t least = std::max(bound(schema, "minimum", -kLargestInteger, place),
                                      bound(schema, "exclusiveMinimum", -kLargestInteger - 1, place) + 1);
  const std::int64_t most = std::min(bound(schema, "maximum", kLargestInteger, place),
                                     bound(schema, "exclusiveMaximum", kLargestInteger + 1, place) - 1);
  if (most < least) refuse(place, "no integer is between its bounds");
  return integers_between(least, most);
}

PatternPtr SchemaReader::number(const Json& schema, const std::string& place) const {
  for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (schema.contains(key))
      refuse(place, std::string("'") + key + "' of a number that is no integer is not supported");
  }
  const PatternPtr digit = one_of({{'0', '9'}});
  return sequence({integers_between(-kLargestInteger, kLargestInteger),
                   optional(sequence({literal("."), repeat(digit, 1, kDigits)}))});
}

PatternPtr SchemaReader::array(const Json& schema, const std::string& place) {
  const int least = count(schema, "minItems", 0, place);
  const int most = count(schema, "maxItems", Pattern::kEndless, place);
  if (most != Pattern::kEndless && most < least) refuse(place, "'maxItems' is below 'minItems'");
  if (most == 0) return literal("[]");
  const PatternPtr item = read(schema.value("items", Json::object()), place + "/items");
  const PatternPtr others = repeat(sequence({literal(","), item}), std::max(least - 1, 0),
                                   most == Pattern::kEndless ? most : most - 1);
  const PatternPtr items = sequence({item, others});
  return sequence({literal("["), least == 0 ? optional(items) : items, literal("]")});
}

PatternPtr SchemaReader::object(const Json& schema, const std::string& place) {
  std::set<std::string> required;
  for (const Json& name : schema.value("required", Json::array())) {
    if (!name.is_string() || !schema.value("properties", Json::object()).contains(name.get<std::string>()))
      refuse(place, "'required' names " + name.dump() + ", which is not in 'properties'");
    required.insert(name.get<std::string>());
  }
  // From the last property to the first: what may follow if a property was written before, and if none was.
  PatternPtr rest = literal(""), first = literal("");
  const Json properties = schema.value("properties", Json::object());
  for (auto property = properties.rbegin(); property != properties.rend(); ++property) {
    const std::string key = property.key();
    const PatternPtr written =
        sequence({literal(Json(key).dump() + ":"), read(property.value(), place + "/properties/" + key)});
    const PatternPtr begun = sequence({written, rest});
    const bool needed = required.count(key) > 0;
    first = needed ? begun : choice({begun, first});
    const PatternPtr next = sequence({literal(","), written});
    rest = sequence({needed ? next : optional(next), rest});
  }
  return sequence({literal("{"), first, literal("}")});
}

}  // namespace

PatternPtr json_schema_pattern(const Json& schema) {
  return SchemaReader(schema).read(schema, "#");
}

}  // namespace zoo
