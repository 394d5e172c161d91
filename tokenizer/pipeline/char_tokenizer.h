#pragma once

#include <array>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// One id for each Unicode code point, in the sorted order of the training text's characters (as nanoGPT's
/// character-level data sets have it). Saved as a tokenizer.json of model type BPE without merges.
class CharTokenizer final : public Tokenizer {
 public:
  /// The characters that occur in `text`, sorted. Throws Error if it is empty or not UTF-8.
  static CharTokenizer train(std::string_view text);

  /// characters[id] is the character of that id: each a Unicode scalar value. Throws Error if there is none
  /// or one occurs twice.
  explicit CharTokenizer(std::vector<char32_t> characters);

  using Tokenizer::encode;
  std::string_view kind() const override { return "char"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(characters_.size()); }
  std::vector<TokenId> encode(std::string_view text) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  void save(const std::filesystem::path& directory) const override;

  const std::vector<char32_t>& characters() const { return characters_; }

 protected:
  Encoding tokenize(std::string_view text, bool with_offsets) const override;

 private:
  static constexpr std::size_t kPageSize = 256;
  using Page = std::array<TokenId, kPageSize>;

  TokenId id_of(char32_t character) const {
    return pages_[page_of_[character / kPageSize]][character % kPageSize];
  }

  std::vector<char32_t> characters_;
  // Code point -> id in two steps, so that the table is small and a look-up has no search; -1 where there is
  // none. Page 0 is the empty one.
  std::array<std::uint16_t, 0x110000 / kPageSize> page_of_{};
  std::vector<Page> pages_;
};

}  // namespace zoo
