#include "tokenizer/constraint/json_schema.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tokenizer/constraint/byte_automaton.h"

void zoo::fuzz::read(std::string_view input) {
  const nlohmann::ordered_json schema = parse_ordered_json(input);
  if (schema.is_discarded()) throw Error("no JSON");
  const ByteAutomaton automaton(json_schema_pattern(schema));
  automaton.fits("{}");
}
