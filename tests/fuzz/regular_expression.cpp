#include "tokenizer/constraint/regular_expression.h"

#include "tests/fuzz/fuzz.h"
#include "tokenizer/constraint/byte_automaton.h"

void zoo::fuzz::read(std::string_view input) {
  for (const ExpressionDialect dialect : {ExpressionDialect::kPython, ExpressionDialect::kEcmaScript})
    ByteAutomaton(parse_regular_expression(input, dialect).pattern).fits(input);
}
