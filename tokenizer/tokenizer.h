#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

using TokenId = std::int32_t;

/// Text to ids and back. Ids lie in [0, vocab_size()). Immutable once made: safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "char", "byte", "sentencepiece", …: what `--tokenizer` calls it.
  virtual std::string_view kind() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  /// Throws Error if text is not UTF-8 or holds a character the vocabulary cannot express; says where.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  /// The bytes that the ids stand for. Throws Error naming an id outside the vocabulary.
  /// The result may end inside a UTF-8 character (see StreamDecoder).
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  /// The id that ends a text, where the vocabulary has one.
  virtual std::optional<TokenId> eos_id() const { return std::nullopt; }

  /// Writes the files that load_tokenizer and Hugging Face read into an existing directory.
  virtual void save(const std::filesystem::path& directory) const = 0;
};

/// True if the directory holds a tokenizer file of a kind that load_tokenizer knows.
bool has_tokenizer(const std::filesystem::path& directory);

/// Reads tokenizer.json, or spiece.model / tokenizer.model. Throws Error naming the file and what it
/// expected.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);

}  // namespace zoo
