#include <nlohmann/json.hpp>

#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/use_tokenizer.h"

// vocab.txt alone, or vocab.json and merges.txt.
void zoo::fuzz::read(std::string_view input) {
  const auto parts = parts_of(input, 2);
  const bool is_bpe = !parts[1].empty();
  for (const char* name : {"vocab.txt", "vocab.json", "merges.txt"})
    std::filesystem::remove(directory() / name);
  write(is_bpe ? "vocab.json" : "vocab.txt", parts[0]);
  if (is_bpe) write("merges.txt", parts[1]);
  const nlohmann::json config{{"model_type", is_bpe ? "gpt2" : "bert"}};
  use(*load_tokenizer(directory().path(), &config));
}
