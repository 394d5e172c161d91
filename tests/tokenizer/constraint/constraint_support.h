#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/message_of.h"
#include "tokenizer/constraint/byte_automaton.h"
#include "tokenizer/constraint/json_schema.h"
#include "tokenizer/constraint/regular_expression.h"

namespace zoo::test {

constexpr auto kPython = ExpressionDialect::kPython, kEcmaScript = ExpressionDialect::kEcmaScript;

inline bool fits(const PatternPtr& pattern, const std::string& text) {
  return ByteAutomaton(pattern).fits(text);
}

inline bool matches(const std::string& expression, const std::string& text,
                    ExpressionDialect dialect = kPython) {
  return fits(parse_regular_expression(expression, dialect).pattern, text);
}

/// True if JSON of this text fits the schema.
inline bool allows(const std::string& schema, const std::string& text) {
  return fits(json_schema_pattern(nlohmann::ordered_json::parse(schema)), text);
}

}  // namespace zoo::test
