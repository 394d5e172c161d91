#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/bpe_model.h"

namespace zoo::test {

/// A file of tests/golden/bpe, made by make_bpe.py.
inline nlohmann::json golden_bpe(const std::string& name) {
  const auto path = std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "bpe" / name;
  return nlohmann::json::parse(read_bytes(path));
}

/// The model of a JSON object with "vocab" and "merges".
inline BpeModel bpe_model(const nlohmann::json& json, const BpeOptions& options) {
  std::vector<VocabularyEntry> vocabulary;
  const nlohmann::json& vocab = json.at("vocab");
  for (auto token = vocab.begin(); token != vocab.end(); ++token) {
    vocabulary.push_back({token.key(), token.value().get<TokenId>()});
  }
  MergePairs merges;
  for (const nlohmann::json& merge : json.at("merges")) {
    merges.push_back({merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()});
  }
  return BpeModel(vocabulary, merges, options);
}

inline Ids ids_of(const BpeModel& model, std::string_view word) {
  Ids ids;
  model.encode(word, ids, nullptr);
  return ids;
}

}  // namespace zoo::test
