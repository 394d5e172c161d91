#pragma once

/// @file
/// Use:
///
///     const auto tokenizer = zoo::CharTokenizer::train("to be or not to be");
///     const zoo::TokenIds ids = tokenizer.encode("not");
///     std::cout << tokenizer.decode(ids) << "\n";

#include <array>

#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// One id for each Unicode code point of the training text, in sorted order (as in nanoGPT's character-level
/// data sets). Saved as a tokenizer.json: a BPE model without merges.
class CharTokenizer final : public Tokenizer {
 public:
  /// The sorted characters of `text`. Throws Error if it is empty or not UTF-8.
  static CharTokenizer train(std::string_view text);

  /// characters[id] are Unicode scalar values. Throws Error if the list is empty or a character occurs twice.
  explicit CharTokenizer(std::vector<char32_t> characters);

  std::string_view kind() const override { return "char"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(characters_.size()); }
  TokenIds text_ids(std::string_view text) const override;
  std::size_t division(std::string_view text, std::size_t from) const override {
    return next_character(text, from);
  }
  std::string decode(std::span<const TokenId> ids) const override;
  void save(const std::filesystem::path& directory) const override;

  const std::vector<char32_t>& characters() const { return characters_; }

 protected:
  Encoding tokenize(std::string_view text, const EncodeOptions& options, bool is_second) const override;

 private:
  static constexpr std::size_t kPageSize = 256;
  using Page = std::array<TokenId, kPageSize>;

  TokenId id_of(char32_t character) const {
    return pages_[page_of_[character / kPageSize]][character % kPageSize];
  }

  std::vector<char32_t> characters_;
  // Code point to id in two look-ups, so that the table is small; -1 if there is no id. Page 0 is empty.
  std::array<std::uint16_t, 0x110000 / kPageSize> page_of_{};
  std::vector<Page> pages_;
};

}  // namespace zoo
