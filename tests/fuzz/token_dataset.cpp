#include "data/tokens/token_dataset.h"

#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

// meta.json, then train.bin.
void zoo::fuzz::read(std::string_view input) {
  const auto parts = parts_of(input, 2);
  if (parts[0].empty()) std::filesystem::remove(directory() / "meta.json");
  else write("meta.json", parts[0]);
  write("train.bin", parts[1]);
  write("val.bin", std::string_view("\1\0\2\0", 4));
  const TokenDataset dataset = load_token_dataset(directory().path());
  if (dataset.train.size() > 0) static_cast<void>(dataset.train[dataset.train.size() - 1]);
}
