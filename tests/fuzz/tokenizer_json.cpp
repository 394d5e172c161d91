#include <nlohmann/json.hpp>

#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/use_tokenizer.h"

// tokenizer.json, then tokenizer_config.json.
void zoo::fuzz::read(std::string_view input) {
  const auto parts = parts_of(input, 2);
  write("tokenizer.json", parts[0]);
  write("tokenizer_config.json", parts[1].empty() ? "{}" : parts[1]);
  const nlohmann::json config{{"model_type", "gpt2"}};
  use(*load_tokenizer(directory().path(), &config));
}
