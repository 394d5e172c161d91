#pragma once

/// @file
/// Use:
///
///     const auto tokenizer = zoo::load_tokenizer("runs/kjv/final");
///     const zoo::TokenIds ids = tokenizer->encode("In the beginning");
///     std::cout << tokenizer->decode(ids) << "\n";
///     const zoo::Encoding pair = tokenizer->encode_pair("a question", "a text", {.max_length = 384});

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/model_path.h"
#include "tokenizer/encoding.h"

namespace zoo {

enum class SpecialToken { bos, eos, unk, sep, pad, cls, mask };

/// Settings of tokenizer_config.json, or of tokenizer.json, for callers that truncate and pad.
struct TextLimits {
  std::optional<std::size_t> max_length;  // "model_max_length"; none: no limit
  bool truncates_left = false;            // "truncation_side"
  bool pads_left = false;                 // "padding_side"
  /// False if models get no segment ids of its pairs: "model_input_names", else as transformers' class.
  bool gives_segments = true;
};

/// Text to ids and back. Ids are in [0, vocab_size()). Safe to share between threads after the setup.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "char", "byte", "sentencepiece", …, as in `--tokenizer`.
  virtual std::string_view kind() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  /// The ids without special tokens. Throws Error with the position of what is not UTF-8 or has no id.
  TokenIds encode(std::string_view text) const;

  /// The first position from `from` on where a UTF-8 text can be divided without other ids; else its end.
  virtual std::size_t division(std::string_view text, [[maybe_unused]] std::size_t from) const {
    return text.size();
  }

  /// Adds the special tokens that Hugging Face adds, truncates and computes offsets. Throws as encode(text)
  /// does, and if max_length has no room for the special tokens.
  Encoding encode(std::string_view text, const EncodeOptions& options) const;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const;

  /// Pairs of `first` with each part of `second` that fits options.max_length; neighbouring parts share
  /// `stride` tokens. Each text is tokenized once. Throws Error if a part has no room for more than `stride`.
  std::vector<Encoding> encode_windows(std::string_view first, std::string_view second, std::size_t stride,
                                       const EncodeOptions& options) const;

  /// The text of the ids; special tokens are skipped. Throws Error naming an id outside the vocabulary. The
  /// result may end inside a UTF-8 character (see StreamDecoder).
  std::string decode(std::span<const TokenId> ids) const { return text_of(ids, /*skips_special=*/true); }

  /// The same including special tokens, such as "</s>".
  std::string decode_with_special_tokens(std::span<const TokenId> ids) const { return text_of(ids, false); }

  /// The token of an id in the vocabulary's spelling: "##ing", "Ġthe". Throws Error for an id outside it.
  virtual std::string token_text(TokenId id) const;

  /// The id of a role, if the tokenizer has one.
  std::optional<TokenId> special_id(SpecialToken role) const;
  bool has_role(TokenId id) const;

  /// The id that ends a text, if the vocabulary has one.
  std::optional<TokenId> eos_id() const { return special_id(SpecialToken::eos); }

  /// True if tokens inside a word have a prefix, like "##ing".
  virtual bool marks_subwords() const { return false; }

  const TextLimits& limits() const { return limits_; }
  void set_limits(const TextLimits& limits) { limits_ = limits; }

  /// After this call, a text with an id >= `count`, for which the model has no row, is an Error naming the
  /// token and its id, and a role with such an id counts as missing.
  void set_id_count(std::int64_t count) { id_count_ = count; }
  /// Number of ids that a text may contain.
  std::int64_t id_count() const { return std::min(id_count_, vocab_size()); }

  /// Lowercases each text except its special tokens, unless the normalization does: "do_lower_case" of
  /// Sentence-Transformers. Throws Error if this kind of tokenizer has no normalization.
  virtual void lowercase_texts();

  /// Writes the files that load_tokenizer and Hugging Face read into an existing directory.
  virtual void save(const std::filesystem::path& directory) const = 0;

 protected:
  virtual std::optional<TokenId> role_id(SpecialToken) const { return std::nullopt; }

  /// Fills in ids and, if requested and known, offsets and words. No special tokens, no truncation.
  virtual Encoding tokenize(std::string_view text, const EncodeOptions& options, bool is_second) const = 0;

  virtual std::string text_of(std::span<const TokenId> ids, bool skips_special) const = 0;

  virtual const EncodingTemplate& encoding_template() const { return plain_template(); }

 private:
  EncodeOptions with_side(EncodeOptions options) const;
  Encoding checked(Encoding encoding) const;

  TextLimits limits_;
  std::int64_t id_count_ = std::numeric_limits<std::int64_t>::max();
};

/// True if the directory, or the GGUF file, holds a tokenizer that load_tokenizer knows.
bool has_tokenizer(const ModelPath& directory);

/// Reads tokenizer.json, else spiece.model / tokenizer.model, vocab.txt, or vocab.json with merges.txt, and
/// applies tokenizer_config.json as Hugging Face does. A path to a GGUF file: the tokenizer inside. An
/// adapter that has one goes before its model. `config` is the content of config.json; null: it is read if it
/// is there. Throws Error naming the file and what was expected.
std::unique_ptr<Tokenizer> load_tokenizer(const ModelPath& directory, const nlohmann::json* config = nullptr);

/// The first id that is another token in one of them than in the other.
std::optional<TokenId> first_other_token(const Tokenizer& one, const Tokenizer& other);

}  // namespace zoo
