#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"

namespace zoo {

/// What a special token is for.
enum class SpecialToken { bos, eos, unk, sep, pad, cls, mask };

/// Text to ids and back. Ids lie in [0, vocab_size()). Immutable once made: safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "char", "byte", "sentencepiece", …: what `--tokenizer` calls it.
  virtual std::string_view kind() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  /// The ids of the text and nothing else: no special token is added.
  /// Throws Error if text is not UTF-8 or holds a character the vocabulary cannot express; says where.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  /// With the special tokens that Hugging Face adds, cut to a length, with offsets. Throws as encode(text)
  /// does, and if max_length has no room for the special tokens.
  Encoding encode(std::string_view text, const EncodeOptions& options) const;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const;

  /// The bytes that the ids stand for; special tokens stand for nothing. Throws Error naming an id outside
  /// the vocabulary. The result may end inside a UTF-8 character (see StreamDecoder).
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  /// The same with the special tokens written out, such as "</s>".
  virtual std::string decode_with_special_tokens(std::span<const TokenId> ids) const { return decode(ids); }

  /// How the vocabulary writes an id: "##ing", "Ġthe". Throws Error for an id outside it.
  virtual std::string token_text(TokenId id) const;

  /// The id with a role, where the tokenizer has one.
  virtual std::optional<TokenId> special_id(SpecialToken) const { return std::nullopt; }

  /// The id that ends a text, where the vocabulary has one.
  std::optional<TokenId> eos_id() const { return special_id(SpecialToken::eos); }

  /// Writes the files that load_tokenizer and Hugging Face read into an existing directory.
  virtual void save(const std::filesystem::path& directory) const = 0;

 protected:
  /// Fills in ids, and offsets and words if they are asked for and known.
  virtual Encoding tokenize(std::string_view text, bool with_offsets) const;

  virtual const EncodingTemplate& encoding_template() const { return plain_template(); }
};

/// True if the directory holds a tokenizer file of a kind that load_tokenizer knows.
bool has_tokenizer(const std::filesystem::path& directory);

/// Reads tokenizer.json, or else spiece.model / tokenizer.model, vocab.txt, or vocab.json with merges.txt;
/// what tokenizer_config.json says is added to them as Hugging Face does it. Throws Error naming the file and
/// what it expected.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);

}  // namespace zoo
