#include "tokenizer/constraint/json_schema.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "tokenizer/constraint/json_values.h"
#include "tokenizer/constraint/schema_branches.h"

namespace zoo {
namespace {

using Json = SchemaJson;

// Of an object whose schema says nothing of its properties; each level makes the automaton four times larger.
constexpr int kLevelsOfRoot = 2, kLevels = 1;

std::vector<std::string> types_of(const Json& branch) {
  const auto has_one_of = [&](std::initializer_list<const char*> keys) {
    return std::ranges::any_of(keys, [&](const char* key) { return branch.contains(key); });
  };
  if (branch.contains("type")) return branch["type"].get<std::vector<std::string>>();
  if (has_one_of({"properties", "required"})) return {"object"};
  if (has_one_of({"items", "prefixItems", "minItems", "maxItems"})) return {"array"};
  if (has_one_of({"pattern", "minLength", "maxLength"})) return {"string"};
  return {"string", "number", "boolean", "null"};
}

// A value of `enum` or `const`.
PatternPtr written(const Json& value, const std::string& place) {
  if (value.is_number_float() && std::abs(value.get<double>()) > static_cast<double>(kLargestInteger))
    refuse_schema(place, "a number in 'enum' or 'const' is too large: " + value.dump());
  return literal(value.dump());
}

// The upper limit of a number of items or characters. What is written stays below a large one: the automaton
// has some ten states for each character.
int most_of(const Json& branch, const char* key, int least) {
  constexpr int kMostWritten = 2'000;
  const int most = branch.value(key, Pattern::kEndless);
  return most > kMostCountedItems ? std::max(least, kMostWritten) : most;
}

PatternPtr string(const Json& branch) {
  const PatternPtr any = one_of(complement({{0, 8}, {0xB, 0xC}, {0xE, 0x1F}}));  // with \t, \n and \r
  const int least = branch.value("minLength", 0);
  PatternPtr characters = repeat(any, least, most_of(branch, "maxLength", least));
  for (const Json& expression : branch.value("pattern", Json::array()))
    characters = both(searched_text(expression.get<std::string>(), any), characters);
  return json_string_of(characters);
}

class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : branches_(root) {}

  PatternPtr read(const Json& schema, const std::string& place) {
    if (++depth_ > SchemaBranches::kDeepest) refuse_schema(place, "schemas are nested too deeply");
    std::vector<PatternPtr> parts;
    for (const Json& branch : branches_.of(schema, place)) {
      if (branch.contains("enum")) {
        for (const Json& one : branch["enum"]) parts.push_back(written(one, place));
      } else {
        for (const std::string& type : types_of(branch)) parts.push_back(value(branch, type, place));
      }
    }
    --depth_;
    return choice(std::move(parts));
  }

 private:
  static constexpr std::size_t kMostProperties = 5'000;  // of objects inside one another

  PatternPtr value(const Json& branch, const std::string& type, const std::string& place) {
    if (type == "string") return string(branch);
    if (type == "number") return numbers_between(number_range(branch, type));
    if (type == "integer") {
      const NumberRange range = number_range(branch, type);
      return integers_between(static_cast<std::int64_t>(range.least), static_cast<std::int64_t>(range.most));
    }
    if (type == "boolean") return choice({literal("true"), literal("false")});
    if (type == "null") return literal("null");
    return type == "array" ? array(branch, place) : object(branch, place);
  }

  PatternPtr array(const Json& branch, const std::string& place) {
    const Json first = branch.value("prefixItems", Json::array()), other = branch.value("items", Json(true));
    const int least = branch.value("minItems", 0), listed = static_cast<int>(first.size());
    int most = most_of(branch, "maxItems", least);
    if (other == Json(false)) most = most == Pattern::kEndless ? listed : std::min(most, listed);
    if (most != Pattern::kEndless && most < least) return choice({});
    // From the last item to the first: what follows those before it. The first of them has no comma.
    PatternPtr rest = literal("");
    const auto precede = [&](int index, const PatternPtr& item) {
      const PatternPtr next = sequence({literal(index > 0 ? "," : ""), item, rest});
      rest = index < least ? next : optional(next);
    };
    const int begin = std::max(listed, 1);  // of items that are alike
    if (most == Pattern::kEndless || most > listed) {
      const PatternPtr item = read(other, place + "/items");
      rest = repeat(sequence({literal(","), item}), std::max(least - begin, 0),
                    most == Pattern::kEndless ? most : most - begin);
      if (listed == 0) precede(0, item);
    }
    for (int i = listed; i-- > 0;)
      if (most == Pattern::kEndless || i < most)
        precede(i, read(first[static_cast<std::size_t>(i)], place + "/prefixItems/" + std::to_string(i)));
    return sequence({literal("["), rest, literal("]")});
  }

  // Any value; arrays and objects to this depth.
  PatternPtr any(int depth) {
    std::vector<PatternPtr> values;
    for (const char* type : {"string", "number", "boolean", "null"})
      values.push_back(value(Json::object(), type, ""));
    if (depth > 0) {
      const PatternPtr inner = any(depth - 1);
      values.push_back(sequence({literal("["), list_of(inner), literal("]")}));
      values.push_back(object_of(inner));
    }
    return choice(std::move(values));
  }

  static PatternPtr list_of(const PatternPtr& one) {
    return optional(sequence({one, repeat(sequence({literal(","), one}), 0, Pattern::kEndless)}));
  }

  static PatternPtr object_of(const PatternPtr& value) {
    return sequence(
        {literal("{"), list_of(sequence({string(Json::object()), literal(":"), value})), literal("}")});
  }

  PatternPtr object(const Json& branch, const std::string& place) {
    const bool is_open = branch.value("additionalProperties", Json()) != Json(false);
    if (is_open && !branch.contains("properties") && !branch.contains("required"))
      return branch.contains("additionalProperties")
                 ? object_of(read(branch["additionalProperties"], place + "/additionalProperties"))
                 : object_of(any(place == "#" ? kLevelsOfRoot : kLevels));
    Json properties = branch.value("properties", Json::object());
    const Json required = branch.value("required", Json::array());
    for (const Json& name : required) {
      if (properties.contains(name.get<std::string>())) continue;
      if (!is_open)
        refuse_schema(place, "'required' names " + name.dump() + ", which is not in 'properties'");
      properties[name.get<std::string>()] = branch.value("additionalProperties", Json(true));
    }
    // Each property's pattern is inside that of the property before it.
    properties_ += properties.size();
    if (properties_ > kMostProperties)
      refuse_schema(place, "more than " + std::to_string(kMostProperties) + " properties inside one another");
    // From the last property to the first: what follows if a property was written before, and if none was.
    PatternPtr rest = literal(""), first = literal("");
    for (auto property = properties.rbegin(); property != properties.rend(); ++property) {
      const std::string key = property.key();
      const PatternPtr written =
          sequence({literal(Json(key).dump() + ":"), read(property.value(), place + "/properties/" + key)});
      const PatternPtr begun = sequence({written, rest});
      const bool needed = std::find(required.begin(), required.end(), key) != required.end();
      first = needed ? begun : choice({begun, first});
      const PatternPtr next = sequence({literal(","), written});
      rest = sequence({needed ? next : optional(next), rest});
    }
    properties_ -= properties.size();
    return sequence({literal("{"), first, literal("}")});
  }

  SchemaBranches branches_;
  int depth_ = 0;
  std::size_t properties_ = 0;
};

}  // namespace

PatternPtr json_schema_pattern(const Json& schema) {
  PatternPtr pattern = SchemaReader(schema).read(schema, "#");
  if (pattern->kind == Pattern::Kind::kChoice && pattern->parts.empty())
    refuse_schema("#", "no value fits it");
  return pattern;
}

}  // namespace zoo
