#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/constraint/constraint_support.h"
#include "tokenizer/constraint/json_values.h"

using namespace zoo;
using Catch::Contains;
using test::allows, test::fits;

namespace {

std::string refusal_of_schema(const std::string& text) {
  return test::message_of([&] { json_schema_pattern(nlohmann::ordered_json::parse(text)); });
}

}  // namespace

TEST_CASE("A large upper limit is compared as it is") {
  const std::string long_text(2500, 'b');
  const std::string schema = R"({"maxLength": 20000, "enum": ["a", ")" + long_text + R"("]})";
  CHECK(allows(schema, "\"" + long_text + "\""));
  CHECK(allows(R"({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 20000})", "[1,1]"));
  CHECK(allows(R"({"type": "string", "pattern": "^b{2100}$", "minLength": 2100, "maxLength": 20000})",
               "\"" + std::string(2100, 'b') + "\""));
}

TEST_CASE("A pattern in a schema is as limited as any expression") {
  CHECK_THAT(refusal_of_schema(R"({"type": "string", "pattern": ")" + std::string(70'000, 'a') + R"("})"),
             Contains("the expression is too long"));
}

TEST_CASE("Integers between two bounds are written without a gap") {
  for (const auto& [least, most] : {std::pair<int, int>{-12, 105}, {3, 3}, {-7, -2}, {0, 9}, {95, 1203}}) {
    const PatternPtr pattern = integers_between(least, most);
    const ByteAutomaton automaton(pattern);
    for (int value = -130; value < 1300; value += 1) {
      INFO(value << " in " << least << " to " << most);
      CHECK(fits(pattern, std::to_string(value)) == (value >= least && value <= most));
    }
    CHECK_FALSE(fits(pattern, "05"));
    CHECK_FALSE(fits(pattern, "-0"));
  }
}

TEST_CASE("Numbers between two bounds are written without a gap") {
  for (const auto& [least, most] : {std::pair<int, int>{500, 1500},
                                    {-2250, 750},
                                    {50, 60},
                                    {9900, 10000},
                                    {-500, -125},
                                    {1020, 1030},
                                    {3, 3}}) {
    for (const auto& [least_is_open, most_is_open] :
         {std::pair<bool, bool>{false, false}, {false, true}, {true, false}, {true, true}}) {
      const ByteAutomaton automaton(choice(
          {literal("none"), numbers_between({least / 1000.0, most / 1000.0, least_is_open, most_is_open})}));
      for (int value = -2300; value < 10050; ++value) {
        INFO(value << " in " << least << " to " << most << " thousandths, " << least_is_open << most_is_open);
        const bool fits =
            (least_is_open ? value > least : value >= least) && (most_is_open ? value < most : value <= most);
        if (value == 0 && !fits) continue;
        const std::string digits = std::to_string(10000 + std::abs(value) % 1000).substr(2);
        const std::string whole = (value < 0 ? "-" : "") + std::to_string(std::abs(value) / 1000);
        REQUIRE(automaton.fits(whole + "." + digits) == fits);
        REQUIRE(automaton.fits(whole + "." + digits + "0") == fits);
        if (value % 100 == 0) REQUIRE(automaton.fits(whole + "." + digits[0]) == fits);
        if (value % 1000 == 0) REQUIRE(automaton.fits(whole) == fits);
      }
    }
  }
}

TEST_CASE("A schema allows the JSON that it should") {
  const std::string person = R"({"type": "object", "properties": {"b": {"type": "boolean"},
    "a": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, "c": {"type": "null"}},
    "required": ["a"]})";
  CHECK(allows(person, R"({"a":[1]})"));
  CHECK(allows(person, R"({"b":true,"a":[1,-20],"c":null})"));
  CHECK_FALSE(allows(person, R"({"b":true})"));
  CHECK_FALSE(allows(person, R"({"a":[1],"b":true})"));  // in another order than the schema's
  CHECK_FALSE(allows(person, R"({"a":[]})"));
  CHECK_FALSE(allows(person, R"({"a":[1,2,3]})"));
  CHECK_FALSE(allows(person, R"({,"a":[1]})"));
  CHECK_FALSE(allows(person, R"({"a":[1],})"));
  CHECK(allows(R"({"properties": {"x": {}}})", "{}"));
  CHECK(allows(R"({"type": "string", "maxLength": 2})", R"("\"é")"));
  CHECK_FALSE(allows(R"({"type": "string", "maxLength": 2})", R"("abc")"));
  CHECK_FALSE(allows(R"({"type": "string"})", "\"a\nb\""));
  CHECK(allows(R"({"type": "string"})", R"("a\nb\t")"));
  CHECK(allows(R"({"type": "string", "pattern": "^a\\nb$"})", R"("a\nb")"));
  CHECK(allows(R"({"type": "string", "pattern": "b+$"})", R"("a\\bb")"));
  CHECK_FALSE(allows(R"({"type": "string", "pattern": "b+$"})", R"("abba")"));
  CHECK(allows(R"({"enum": ["é", 1, {"k": [null]}]})", R"({"k":[null]})"));
  CHECK_FALSE(allows(R"({"enum": ["é", 1], "type": "string"})", "1"));
  CHECK(allows(R"({"type": "number"})", "-12.50"));
  CHECK_FALSE(allows(R"({"type": "number"})", "1."));
  CHECK(allows(R"({"oneOf": [{"type": "null"}, {"type": "integer", "exclusiveMinimum": 3}]})", "4"));
  CHECK_FALSE(allows(R"({"oneOf": [{"type": "null"}, {"type": "integer", "exclusiveMinimum": 3}]})", "3"));
  CHECK(allows(R"({"$ref": "#/definitions/a", "definitions": {"a": {"const": true}}})", "true"));
}

TEST_CASE("An object of which a schema says nothing more has any properties") {
  for (const char* text : {"{}", R"({"a":1})", R"({"a":"x","b":[1,{"c":null}],"d":{"e":[true]}})"})
    CHECK(allows(R"({"type": "object"})", text));
  CHECK_FALSE(allows(R"({"type": "object"})", R"({"a":1,})"));
  CHECK_FALSE(allows(R"({"type": "object"})", "[]"));
  CHECK(allows(R"({"properties": {"o": {"type": "object"}}})", R"({"o":{"a":[1],"b":{"c":2}}})"));
  CHECK_FALSE(allows(R"({"type": "object", "additionalProperties": false})", R"({"a":1})"));
  CHECK(allows(R"({"additionalProperties": {"type": "integer"}, "type": "object"})", R"({"a":1,"b":2})"));
  CHECK_FALSE(allows(R"({"additionalProperties": {"type": "integer"}, "type": "object"})", R"({"a":"b"})"));
}

TEST_CASE("Unsupported keywords of a schema are named with their path") {
  CHECK_THAT(refusal_of_schema(R"({"properties": {"a": {"multipleOf": 2}}})"),
             Contains("'multipleOf'") && Contains("#/properties/a"));
  CHECK_THAT(refusal_of_schema(R"({"type": "text"})"), Contains("\"text\""));
  CHECK_THAT(refusal_of_schema(R"({"required": ["a"], "additionalProperties": false})"), Contains("\"a\""));
  CHECK_THAT(refusal_of_schema(R"({"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/b"}}})"),
             Contains("leads back"));
  CHECK_THAT(refusal_of_schema(R"({"$ref": "other.json"})"), Contains("other.json"));
  CHECK_THAT(refusal_of_schema(R"({"type": "number", "minimum": 0.30000000000000004})"),
             Contains("'minimum'"));
  CHECK_THAT(refusal_of_schema(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})"), Contains("anyOf"));
  CHECK_THAT(refusal_of_schema("false"), Contains("no value fits"));
  CHECK_THAT(refusal_of_schema(R"({"type": "array", "minItems": 3, "maxItems": 2})"),
             Contains("no value fits"));
}

TEST_CASE("Keywords beside references and alternatives count in each of them") {
  const std::string reference = R"({"$ref": "#/$defs/n", "minimum": 5, "$defs": {"n": {"type": "integer"}}})";
  CHECK(allows(reference, "5"));
  CHECK_FALSE(allows(reference, "0"));
  const std::string any = R"({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 30}], "minimum": 25})";
  CHECK(allows(any, "25"));
  CHECK_FALSE(allows(any, "7"));
  CHECK_FALSE(allows(any, "31"));
  CHECK_FALSE(allows(R"({"enum": [1, 5, 10], "minimum": 5})", "1"));
  CHECK(allows(R"({"enum": [1, 5, 10], "minimum": 5})", "10"));
  CHECK_THAT(refusal_of_schema(R"({"enum": [1, 2], "const": 3})"), Contains("no value fits"));
  const std::string objects = R"({"properties": {"a": {"type": "integer"}}, "required": ["a"], "allOf": [
    {"type": "object", "properties": {"a": {"maximum": 3}, "b": true}, "additionalProperties": false}]})";
  CHECK(allows(objects, R"({"a":3})"));
  CHECK(allows(objects, R"({"a":3,"b":null})"));
  CHECK_FALSE(allows(objects, R"({"a":4})"));
  // A sibling's property falls under the additionalProperties of the branch that does not list it.
  CHECK_FALSE(
      allows(R"({"properties": {"b": {}}, "allOf": [{"additionalProperties": false}]})", R"({"b":1})"));
  CHECK_FALSE(
      allows(R"({"type": ["string", "null"], "enum": ["ab", "abc", 1, null], "maxLength": 2})", R"("abc")"));
  CHECK(allows(R"({"type": "string", "pattern": "^[a-c]+$", "minLength": 2, "maxLength": 3})", R"("abc")"));
  CHECK_FALSE(
      allows(R"({"type": "string", "pattern": "^[a-c]+$", "minLength": 2, "maxLength": 3})", R"("a")"));
  CHECK_FALSE(allows(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"})", R"("aa")"));
  CHECK(allows(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"})", R"("xbya")"));
}

TEST_CASE("Long lists are combined at once, and too many values are refused") {
  using Json = nlohmann::ordered_json;
  const auto numbers = [](int first, Json all_of) {
    Json schema{{"enum", Json::array()}, {"allOf", std::move(all_of)}};
    for (int i = 0; i < 20000; ++i) schema["enum"].push_back(first + i);
    return schema;
  };
  const std::string both = numbers(0, Json::array({numbers(19998, Json::array({true}))})).dump();
  CHECK(allows(both, "19999"));
  CHECK_FALSE(allows(both, "19997"));
  CHECK_THAT(refusal_of_schema(numbers(0, Json(300, true)).dump()), Contains("too large schemas"));
  Json texts{{"enum", Json::array({"b"})}, {"pattern", "^[\\w]{2,40}$"}};
  for (int i = 0; i < 2000; ++i) texts["enum"].push_back("a" + std::to_string(i));
  CHECK(allows(texts.dump(), R"("a1999")"));
  CHECK_FALSE(allows(texts.dump(), R"("b")"));
}

TEST_CASE("Chains of references and properties are refused before they fill the stack") {
  using Json = nlohmann::ordered_json;
  constexpr int kHops = 150'000;
  Json hops{{"$ref", "#/enum/0"}, {"enum", Json::array()}}, steps = hops;
  for (int i = 1; i < kHops; ++i) {
    const Json next{{"$ref", "#/enum/" + std::to_string(i)}};
    hops["enum"].push_back(next);
    steps["enum"].push_back({{"properties", {{"a", next}}}});
  }
  for (Json* schema : {&hops, &steps}) {
    (*schema)["enum"].push_back({{"type", "null"}});
    CHECK_THAT(refusal_of_schema(schema->dump()), Contains("nested too deeply"));
  }
  Json inner{{"type", "null"}};
  for (int level = 0; level < 80; ++level) {
    Json object{{"additionalProperties", false}, {"properties", Json::object()}};
    for (int i = 0; i < 100; ++i) object["properties"]["k" + std::to_string(i)] = false;
    object["properties"]["z"] = inner;
    inner = object;
  }
  CHECK_THAT(refusal_of_schema(inner.dump()), Contains("5000 properties inside one another"));
}

TEST_CASE("Bounds that no text or list fits leave values of other types") {
  const std::string length = R"({"minLength": 3, "maxLength": 0, "maximum": 5})";
  CHECK(allows(length, "5"));
  CHECK(allows(length, "true"));
  CHECK_FALSE(allows(length, "6"));
  CHECK_FALSE(allows(length, R"("")"));
  CHECK(allows(R"({"minItems": 2, "maxItems": 1, "maxLength": 1})", R"("a")"));
  CHECK_FALSE(allows(R"({"minItems": 2, "maxItems": 1, "maxLength": 1})", R"("ab")"));
}

TEST_CASE("Alternatives of oneOf are accepted if no value fits two of them") {
  const std::string shapes =
      R"({"type": "object", "required": ["kind"], "properties": {"kind": {}}, "oneOf": [
    {"properties": {"kind": {"const": "circle"}, "radius": {"type": "integer"}}, "required": ["radius"]},
    {"properties": {"kind": {"const": "square"}}}]})";
  CHECK(allows(shapes, R"({"kind":"circle","radius":1})"));
  CHECK(allows(shapes, R"({"kind":"square"})"));
  CHECK_FALSE(allows(shapes, R"({"kind":"circle"})"));
  CHECK(allows(R"({"oneOf": [{"const": 1}, {"enum": [2, "1"]}]})", "2"));
  CHECK_THAT(refusal_of_schema(R"({"oneOf": [{"const": 1}, {"enum": [1.0]}]})"), Contains("'oneOf'"));
  CHECK_THAT(refusal_of_schema(R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})"),
             Contains("'oneOf'"));
  // A no-break space is white space in ECMA-262, so both fit.
  CHECK_THAT(refusal_of_schema("{\"oneOf\": [{\"pattern\": \"^\\\\s$\"}, {\"const\": \"\u00A0\"}]}"),
             Contains("'oneOf'"));
}

TEST_CASE("Numbers between two bounds keep them as doubles") {
  const std::string open = R"({"type": "number", "exclusiveMinimum": -2, "exclusiveMaximum": 100})";
  for (const char* text : {"-1.99", "-0.5", "0", "99.9999", "1.5"}) CHECK(allows(open, text));
  for (const char* text : {"-2", "-2.0", "100", "100.0", "99.999999999999999", "-1.999999999999999"})
    CHECK_FALSE(allows(open, text));
  const std::string closed = R"({"type": "number", "minimum": -3, "maximum": -2})";
  for (const char* text : {"-3", "-3.0", "-2", "-2.00", "-2.5"}) CHECK(allows(closed, text));
  for (const char* text : {"-3.01", "-1.9", "2.5", "0"}) CHECK_FALSE(allows(closed, text));
}

TEST_CASE("References are JSON pointers in a URI") {
  const std::string schema =
      R"({"$defs": {"a/b%~": {"items": [{"const": 7}]}}, "$ref": "#/$defs/a~1b%25~0/items/0"})";
  CHECK(allows(schema, "7"));
  CHECK(allows(R"({"definitions": {"a/b%~": {"const": 7}}, "$ref": "#/definitions/a~1b%25~0"})", "7"));
  for (const char* reference :
       {"#/$defs/~2", "#/$defs/%2", "#/$defs/%zz", "#x", "#/$defs/0", "a.json", "#/$defs/~"})
    CHECK_THAT(refusal_of_schema(std::string(R"({"$defs": {}, "$ref": ")") + reference + "\"}"),
               Contains(reference));
  CHECK_THAT(refusal_of_schema(R"({"properties": {"x": {"$ref": "#"}}})"), Contains("leads back"));
  CHECK_THAT(refusal_of_schema(R"({"properties": {"x": {"$id": "u"}}})"), Contains("'$id'"));
}

TEST_CASE("A keyword with a value of the wrong kind is named") {
  const nlohmann::json values = {
      nullptr, true, -1, 0.5, "x", {1}, {{"a", 1}}, {{"a", 2}, {"b", nlohmann::json::array()}}, 1e300};
  for (const char* key : {"type",
                          "enum",
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
                          "allOf",
                          "anyOf",
                          "oneOf",
                          "$defs",
                          "definitions"}) {
    int refused = 0;
    for (const nlohmann::json& value : values) {
      try {
        json_schema_pattern(nlohmann::ordered_json{{key, value}});
      } catch (const Error& error) {
        refused += static_cast<int>(std::string(error.what()).find(std::string("'") + key + "'") !=
                                    std::string::npos);
      }
    }
    INFO(key);
    CHECK(refused >= 4);
  }
}
