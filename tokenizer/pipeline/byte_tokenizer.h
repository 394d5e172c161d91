#pragma once

#include "tokenizer/tokenizer.h"

namespace zoo {

/// 256 ids, each the value of a byte of UTF-8: needs no training and expresses every text. There is no id for
/// the end of a text, so that ids stay bytes. Saved as a tokenizer.json of model type BPE without merges over
/// GPT-2's printable alphabet for bytes.
class ByteTokenizer final : public Tokenizer {
 public:
  using Tokenizer::encode;
  std::string_view kind() const override { return "byte"; }
  std::int64_t vocab_size() const override { return 256; }
  std::vector<TokenId> encode(std::string_view text) const override;
  /// The bytes as they are: what a model made up need not be UTF-8.
  std::string decode(std::span<const TokenId> ids) const override;
  void save(const std::filesystem::path& directory) const override;

 protected:
  Encoding tokenize(std::string_view text, bool with_offsets) const override;
};

}  // namespace zoo
