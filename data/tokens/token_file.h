#pragma once

/// @file
/// Use:
///
///     const zoo::TokenFile tokens("train.bin", zoo::TokenWidth::kUint16);
///     std::cout << tokens.size() << " ids, the first is " << tokens[0] << "\n";

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "data/base/atomic_file.h"
#include "data/tokens/text_blocks.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The integer type of a token file's ids, little-endian.
enum class TokenWidth : std::size_t { kUint16 = 2, kUint32 = 4 };

/// uint16 if every id fits (vocab_size <= 65536), else uint32.
TokenWidth token_width(std::int64_t vocab_size);

/// Appends ids to a file. Every id must fit the width.
void write_ids(std::span<const TokenId> ids, TokenWidth width, AtomicFile& file);

/// Throws Error naming `name` and the position, counted from `first`, of the first id >= vocab_size.
void require_ids_below(std::span<const TokenId> ids, std::int64_t vocab_size, const std::string& name,
                       std::size_t first = 0);

/// A sequence of token ids, mapped (nanoGPT's train.bin) or in memory, which copies and threads share.
class TokenFile {
 public:
  /// Maps a file. Throws Error naming it if it ends in part of an id. `name` is for messages; "": the path.
  TokenFile(const std::filesystem::path& path, TokenWidth width, std::string name = "");

  /// Ids in memory; `name` is for error messages.
  TokenFile(TokenIds tokens, std::string name);

  /// Ids that are encoded when they are copied: size() and copy() then count bytes of the text, and it has no
  /// operator[].
  TokenFile(std::shared_ptr<const TextBlocks> text, std::string name)
      : text_(std::move(text)), name_(std::move(name)) {}

  std::size_t size() const {
    return text_ ? text_->bytes() : std::visit([](auto ids) { return ids.size(); }, ids_);
  }
  const std::string& name() const { return name_; }

  /// The id at `index` in [0, size()), unchecked.
  TokenId operator[](std::size_t index) const {
    return std::visit([index](auto ids) { return static_cast<TokenId>(ids[index]); }, ids_);
  }

  /// Copies the ids [begin, begin + out.size()) into `out`. Throws std::out_of_range past the end.
  void copy(std::size_t begin, std::span<std::int64_t> out) const;

  /// Throws Error naming the file and the position of the first id >= vocab_size. Reads all ids.
  void require_ids_below(std::int64_t vocab_size) const;

 private:
  std::shared_ptr<const void> owner_;  // owner of the ids
  std::shared_ptr<const TextBlocks> text_;
  std::variant<std::span<const std::uint16_t>, std::span<const std::uint32_t>> ids_;
  std::string name_;
};

}  // namespace zoo
