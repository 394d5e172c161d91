#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>
#include <unicode/uniset.h>

#include "tests/support/catch.h"
#include "tests/tokenizer/constraint/constraint_support.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/text/utf8.h"

using namespace zoo;
using Catch::Contains;
using test::allows, test::kEcmaScript, test::kPython, test::matches;

namespace {

std::string refusal_of_expression(const std::string& text, ExpressionDialect dialect = kPython) {
  return test::message_of([&] { parse_regular_expression(text, dialect); });
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
  CHECK_THAT(refusal_of_expression(R"([\d-z])"), Contains("begins with a class"));
  CHECK_THAT(refusal_of_expression(R"([a-\d])"), Contains("ends with a class"));
  CHECK(matches(R"([\w-.]+)", "a-.", kEcmaScript));
  CHECK_THAT(refusal_of_expression("(a$)"), Contains("anchor"));
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
