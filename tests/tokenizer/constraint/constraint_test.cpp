#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>
#include <unicode/uniset.h>

#include "data/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/constraint/byte_automaton.h"
#include "tokenizer/constraint/json_schema.h"
#include "tokenizer/constraint/json_values.h"
#include "tokenizer/constraint/regular_expression.h"
#include "tokenizer/constraint/stop_strings.h"
#include "tokenizer/constraint/token_automaton.h"
#include "tokenizer/text/utf8.h"

using namespace zoo;
using Catch::Contains;

namespace {

bool fits(const PatternPtr& pattern, const std::string& text) { return ByteAutomaton(pattern).fits(text); }

constexpr auto kPython = ExpressionDialect::kPython, kEcmaScript = ExpressionDialect::kEcmaScript;

bool matches(const std::string& expression, const std::string& text, ExpressionDialect dialect = kPython) {
  return fits(parse_regular_expression(expression, dialect).pattern, text);
}

bool allows(const std::string& schema, const std::string& text) {
  return fits(json_schema_pattern(nlohmann::ordered_json::parse(schema)), text);
}

std::string refusal_of_expression(const std::string& text, ExpressionDialect dialect = kPython) {
  return test::message_of([&] { parse_regular_expression(text, dialect); });
}

std::string refusal_of_schema(const std::string& text) {
  return test::message_of([&] { json_schema_pattern(nlohmann::ordered_json::parse(text)); });
}

}  // namespace

TEST_CASE("A regular expression fits whole texts") {
  CHECK(matches("ab*c", "ac"));
  CHECK(matches("ab*c", "abbbc"));
  CHECK_FALSE(matches("ab*c", "abb"));
  CHECK_FALSE(matches("ab*c", "xac"));
  CHECK(matches("(?:a|bc){2,3}", "abca"));
  CHECK_FALSE(matches("(?:a|bc){2,3}", "abcaa"));
  CHECK_FALSE(matches("a{2}", "a"));
  CHECK(matches("a{2,}", "aaaaa"));
  CHECK(matches("a{x}", "a{x}"));  // not a count
  CHECK(matches("[^a-y]+?", "zé"));
  CHECK_FALSE(matches("[^a-y]+", "zb"));
  CHECK(matches(R"([\d\-\]]+\.)", "1-]."));
  CHECK(matches(R"(\x41\u00e9\n)", "Aé\n"));
  CHECK(matches("^a.$", "a😀"));
  CHECK_FALSE(matches("a.", "a\n"));
  CHECK(matches("", ""));
  CHECK(matches("|a", ""));
}

TEST_CASE("A repetition of a repetition fits what both say, and is not larger than one") {
  struct Case {
    const char* expression;
    bool nothing, one, three;
  };
  for (const auto& [expression, nothing, one, three] :
       {Case{"(a+)+", false, true, true}, Case{"(a+)?", true, true, true}, Case{"(a+)*", true, true, true},
        Case{"(a?)+", true, true, true}, Case{"(a?)?", true, true, false}, Case{"(a*)?", true, true, true},
        Case{"(a{2})+", false, false, false}, Case{"(a+){2}", false, false, true},
        Case{"(a{3})?", true, false, true}}) {
    INFO(expression);
    CHECK(matches(expression, "") == nothing);
    CHECK(matches(expression, "a") == one);
    CHECK(matches(expression, "aaa") == three);
  }
  std::string nested = "(a|b)+";
  for (int i = 0; i < 60; ++i) nested = "(" + nested + ")+";
  CHECK(matches(nested, "aaa"));
  CHECK_FALSE(matches(nested, ""));
}

TEST_CASE("Nothing, however often it is repeated, is the empty text") {
  std::string groups = "((";
  for (int i = 0; i < 30000; ++i) groups += "()";
  for (const std::string& expression :
       {std::string("(((){0,10000}){10000}){39}"), std::string("^(((){10000}){10000}){39}$"),
        std::string("((|()){10000,}){10000}"), std::string("((a{0}){10000}){10000}"),
        groups + "){10000}){10000}"}) {
    INFO(expression.substr(0, 40));
    const ByteAutomaton automaton(parse_regular_expression(expression, kPython).pattern);
    CHECK(automaton.size() == 1);
    CHECK(automaton.fits(""));
    CHECK_FALSE(automaton.fits("a"));
  }
  CHECK(allows(R"({"type": "string", "pattern": "^(((){10000}){10000}){39}$"})", R"("")"));
  CHECK_FALSE(allows(R"({"type": "string", "pattern": "^(((){10000}){10000}){39}$"})", R"("a")"));
  const PatternPtr nothing = both(sequence({}), sequence({}));
  CHECK_THAT(test::message_of([&] { ByteAutomaton(repeat(repeat(nothing, 10000, 10000), 10000, 10000)); }),
             Contains("too large"));
}

TEST_CASE("Ranges of characters are those of UTF-8") {
  // The ends of each UTF-8 size, and characters outside the range.
  CHECK(matches(R"([\u0070-\uffff]*)",
                "p\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"));
  CHECK_FALSE(matches(R"([\u0070-\uffff])", "o"));
  CHECK_FALSE(matches(R"([\u0070-\uffff])", "\xf0\x90\x80\x80"));
  CHECK_FALSE(matches(R"([\u0070-\uffff])", "\xed\xa0\x80"));  // a surrogate
  CHECK(matches(R"([^\u0000-\uffff])", "\xf4\x8f\xbf\xbf"));
  CHECK_FALSE(matches(R"([^\u0000-\uffff])", "\xf4\x90\x80\x80"));
  CHECK_FALSE(matches(".", "\xc3"));
}

TEST_CASE("Long repeats of a set of all scripts") {
  const std::string letter = "\u0e01", mark = "-";
  std::string word;
  for (int i = 0; i < 200; ++i) word += letter;
  const ByteAutomaton automaton(parse_regular_expression(R"(\w{1,200})", kPython).pattern);
  CHECK(automaton.fits(word));
  CHECK(automaton.fits("a_\u00e9\U00020000"));
  CHECK_FALSE(automaton.fits(word + letter));
  CHECK_FALSE(automaton.fits(word.substr(3) + mark));
  CHECK_FALSE(automaton.fits(""));
}

TEST_CASE("Unsupported parts of a regular expression are named with their position") {
  CHECK_THAT(refusal_of_expression("a(b"), Contains("byte 3"));
  CHECK_THAT(refusal_of_expression("a)b"), Contains("byte 1"));
  CHECK_THAT(refusal_of_expression("*a"), Contains("repetition of nothing"));
  CHECK_THAT(refusal_of_expression("(?=a)"), Contains("lookaround"));
  CHECK_THAT(refusal_of_expression(R"((a)\1)"), Contains("\\1"));
  CHECK_THAT(refusal_of_expression("a^b"), Contains("anchor"));
  CHECK_THAT(refusal_of_expression("[b-a]"), Contains("range"));
  CHECK_THAT(refusal_of_expression("[ab"), Contains("without its ]"));
  CHECK_THAT(refusal_of_expression("a{3,2}"), Contains("count"));
  CHECK_THAT(refusal_of_expression("a\\"), Contains("at the end"));
  CHECK_THAT(refusal_of_expression("a{99999}"), Contains("count above"));
  CHECK_THAT(refusal_of_expression("\xff"), Contains("UTF-8"));
  for (const auto& [large, bound] : {std::pair("(.{1000}){1000}", "400000 nodes"),
                                     {"([=A-Za-z]{6525,})+x", "10000000 nodes in its states"}})
    CHECK_THAT(test::message_of([&] { ByteAutomaton(parse_regular_expression(large, kPython).pattern); }),
               Contains("too large, with more than " + std::string(bound)));
}

namespace {

// The characters that an expression matches alone.
std::set<char32_t> characters_of(const std::string& expression, ExpressionDialect dialect) {
  const ByteAutomaton automaton(parse_regular_expression(expression, dialect).pattern);
  std::set<char32_t> found;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    if (automaton.fits(text)) found.insert(c);
  }
  return found;
}

std::set<char32_t> of_ranges(std::initializer_list<std::pair<char32_t, char32_t>> ranges) {
  std::set<char32_t> all;
  for (const auto& [first, last] : ranges)
    for (char32_t c = first; c <= last; ++c) all.insert(c);
  return all;
}

std::set<char32_t> others(const std::set<char32_t>& characters) {
  std::set<char32_t> all = of_ranges({{0, 0xD7FF}, {0xE000, 0x10FFFF}});
  for (const char32_t c : characters) all.erase(c);
  return all;
}

}  // namespace

TEST_CASE("The classes of a pattern are those of ECMA-262 with the flag u") {
  // WhiteSpace (12.2, with Zs) and LineTerminator (12.3); DecimalDigit; WordCharacters without the flag i.
  const auto spaces = of_ranges({{0x9, 0xD},
                                 {0x20, 0x20},
                                 {0xA0, 0xA0},
                                 {0x1680, 0x1680},
                                 {0x2000, 0x200A},
                                 {0x2028, 0x2029},
                                 {0x202F, 0x202F},
                                 {0x205F, 0x205F},
                                 {0x3000, 0x3000},
                                 {0xFEFF, 0xFEFF}});
  const auto digits = of_ranges({{'0', '9'}}),
             words = of_ranges({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  const auto line_ends = of_ranges({{0xA, 0xA}, {0xD, 0xD}, {0x2028, 0x2029}});
  for (const auto& [expression, expected] : {std::pair{"\\s", spaces},
                                             {"\\d", digits},
                                             {"\\w", words},
                                             {"\\S", others(spaces)},
                                             {"\\D", others(digits)},
                                             {"\\W", others(words)},
                                             {"[^\\s]", others(spaces)},
                                             {"[^\\d]", others(digits)},
                                             {"[^\\w]", others(words)},
                                             {"[^\\S]", spaces},
                                             {"[^\\W]", words},
                                             {"[\\s\\S]", others({})},
                                             {".", others(line_ends)},
                                             {"[^]", others({})},
                                             {"[^\\S\\n]", [&] {
                                                auto some = spaces;
                                                some.erase('\n');
                                                return some;
                                              }()}}) {
    INFO(expression);
    CHECK(characters_of(expression, kEcmaScript) == expected);
  }
}

TEST_CASE("The classes of a regular expression are those of Python's re") {
  const auto golden = nlohmann::json::parse(
      test::read_bytes(std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "python_classes.json"));
  const auto read = [&](const std::string& name) {
    std::set<char32_t> all;
    for (const auto& range : golden.at(name))
      for (auto c = range[0].get<char32_t>(); c <= range[1].get<char32_t>(); ++c) all.insert(c);
    return all;
  };
  std::set<char32_t> assigned = read("assigned");  // in the Unicode of that Python, and in that of 3.9
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeSet common(u"[:age=13.0:]", status);
  std::erase_if(assigned, [&](char32_t c) { return !common.contains(static_cast<UChar32>(c)); });
  const auto check = [&](const std::string& expression, const std::set<char32_t>& expected) {
    INFO(expression);
    std::set<char32_t> found = characters_of(expression, kPython);
    std::set<char32_t> wanted = expected;
    for (auto* characters : {&found, &wanted})
      std::erase_if(*characters, [&](char32_t c) { return assigned.count(c) == 0; });
    CHECK(found == wanted);
  };
  const auto without = [&](const std::set<char32_t>& some) {
    std::set<char32_t> rest;
    std::set_difference(assigned.begin(), assigned.end(), some.begin(), some.end(),
                        std::inserter(rest, rest.end()));
    return rest;
  };
  for (const std::string letter : {"d", "w", "s"}) {
    const std::set<char32_t> own = read("\\" + letter), rest = without(own);
    const std::string capital(1, static_cast<char>(letter[0] - 'a' + 'A'));
    check("\\" + letter, own);
    check("[\\" + letter + "]", own);
    check("[^\\" + capital + "]", own);
    check("\\" + capital, rest);
    check("[^\\" + letter + "]", rest);
  }
  check(".", without({'\n'}));
  // U+1E4F0 is a digit since Unicode 15: which Python reads the text is not known.
  for (const char* expression : {"\\d", "\\D", "\\w", "\\W", "[^\\d]", "[^\\D]", "[^\\w]", "[^\\W]"})
    CHECK_FALSE(matches(expression, "\U0001E4F0"));
  CHECK(matches(".", "\U0001E4F0"));
}

TEST_CASE("Ways of writing differ between Python and ECMAScript") {
  CHECK(matches("a{,2}", "aa"));
  CHECK(matches("a{,2}", ""));
  CHECK_FALSE(matches("a{,2}", "aaa"));
  CHECK(matches("a{,}", "aaa"));
  CHECK_THAT(refusal_of_expression("a{,2}", kEcmaScript), Contains("count without its beginning"));
  CHECK(matches("[]a]+", "]a"));
  CHECK(matches("[^]a]", "b"));
  CHECK_FALSE(matches("[^]a]", "]"));
  CHECK_THAT(refusal_of_expression("[]a]", kEcmaScript), Contains("set without characters"));
  CHECK(matches("[^]a\\]", "ba]", kEcmaScript));
  CHECK(matches(R"(\U0001F600\a)", "😀\a"));
  CHECK_THAT(refusal_of_expression(R"(\U0001F600)", kEcmaScript), Contains("\\U"));
  CHECK(matches(R"(\u{1F600}\uD83D\uDE00\cJ)", "😀😀\n", kEcmaScript));
  CHECK_THAT(refusal_of_expression(R"(\u{1F600})"), Contains("digits"));
  CHECK_THAT(refusal_of_expression(R"(\u{})", kEcmaScript), Contains("digits"));
  CHECK_THAT(refusal_of_expression(R"(\u{110000})", kEcmaScript), Contains("10FFFF"));
  CHECK_THAT(refusal_of_expression(R"(\uD83D)", kEcmaScript), Contains("surrogate"));
  CHECK(matches(std::string("\\0"), std::string(1, '\0')));
  CHECK_THAT(refusal_of_expression("\\01"), Contains("\\0"));
  for (const auto dialect : {kPython, kEcmaScript}) {
    for (const char* twice : {"a**", "a{2}{3}", "a++", "a*?+"})
      CHECK_THAT(refusal_of_expression(twice, dialect), Contains("repetition of a repetition"));
    CHECK(matches("(a+?)+", "aa", dialect));
  }
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

TEST_CASE("Unsupported keywords of a schema are named with their path") {
  CHECK_THAT(refusal_of_schema(R"({"properties": {"a": {"format": "date"}}})"),
             Contains("'format'") && Contains("#/properties/a"));
  CHECK_THAT(refusal_of_schema(R"({"type": "text"})"), Contains("\"text\""));
  CHECK_THAT(refusal_of_schema(R"({"required": ["a"], "properties": {}})"), Contains("\"a\""));
  CHECK_THAT(refusal_of_schema(R"({"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/b"}}})"),
             Contains("leads back"));
  CHECK_THAT(refusal_of_schema(R"({"$ref": "other.json"})"), Contains("other.json"));
  CHECK_THAT(refusal_of_schema(R"({"type": "number", "minimum": 0.5})"), Contains("'minimum'"));
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

TEST_CASE("Tokens may follow where they leave a way to an end") {
  // After 'ad' the text could not continue: no token writes the e.
  const TokenAutomaton automaton(parse_regular_expression("a(bc|de)c*", kPython).pattern,
                                 {"a", "ab", "ad", "c", "", "bcc", "b", "x"});
  const auto ids = [&](TokenAutomaton::State state) {
    TokenIds found;
    for (const auto& step : automaton.steps(state)) found.push_back(step.id);
    std::sort(found.begin(), found.end());
    return found;
  };
  CHECK(ids(automaton.begin()) == TokenIds{0, 1});
  CHECK(automaton.distance(automaton.begin()) == 2);
  const auto behind_a = automaton.next(automaton.begin(), 0);
  CHECK(ids(behind_a) == TokenIds{5, 6});
  CHECK(automaton.distance(behind_a) == 1);
  CHECK(automaton.next(automaton.begin(), 2) == TokenAutomaton::kDead);
  CHECK(automaton.next(automaton.begin(), 4) == TokenAutomaton::kDead);
  const auto end = automaton.next(behind_a, 5);
  CHECK(automaton.accepts(end));
  CHECK(automaton.distance(end) == 0);
  CHECK(ids(end) == TokenIds{3});
  CHECK_THAT(test::message_of([] {
               TokenAutomaton(parse_regular_expression("ab", kPython).pattern, {"a", "c"});
             }),
             Contains("vocabulary"));
  CHECK_THAT(test::message_of([] { TokenAutomaton(choice({}), {"a"}); }), Contains("no text fits"));
}

TEST_CASE("Stop strings are found, and what may become one is held back") {
  const StopStrings stop({"end", "né"});
  CHECK(stop.find("the end") == 4);
  CHECK(stop.find("né end") == 0);
  CHECK_FALSE(stop.find("en d"));
  CHECK(stop.undecided("the en") == 2);
  CHECK(stop.undecided("abc") == 0);
  CHECK(stop.undecided("abn\xc3") == 2);  // the first byte of é
  CHECK(stop.undecided("e") == 1);
  CHECK(stop.longest() == 3);
  CHECK_THAT(test::message_of([] { StopStrings({"a", ""}); }), Contains("empty"));
}
