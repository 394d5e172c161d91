#include <nlohmann/json.hpp>

#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/use_tokenizer.h"

void zoo::fuzz::read(std::string_view input) {
  write("spiece.model", input);
  const nlohmann::json config{{"model_type", "t5"}};
  use(*load_tokenizer(directory().path(), &config));
}
