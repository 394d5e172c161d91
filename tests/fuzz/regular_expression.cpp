#include "tokenizer/constraint/regular_expression.h"

#include "tests/fuzz/fuzz.h"
#include "tokenizer/constraint/byte_automaton.h"

void zoo::fuzz::read(std::string_view input) {
  const ByteAutomaton automaton(parse_regular_expression(input).pattern);
  automaton.fits(input);
}
