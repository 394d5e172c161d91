#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/pipeline/bpe_merges.h"
#include "tokenizer/pipeline/flat_table.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A token as tokenizer.json's model.vocab lists it.
struct BpeToken {
  std::string_view text;
  TokenId id;
};

/// An entry of model.merges; its place in the list is its rank.
struct BpeMerge {
  std::string_view left, right;
};

/// The settings of tokenizer.json's model of type BPE, with its names.
struct BpeOptions {
  std::optional<std::string> unk_token;  // without one, characters that have no token are left out
  bool fuse_unk = false;                 // one unk_token for a run of unknown characters
  bool byte_fallback = false;            // unknown characters as <0xC3> <0xA9>, where those are tokens
  bool ignore_merges = false;            // a word that is a token is that token, whatever the merges say
  std::string continuing_subword_prefix, end_of_word_suffix;
  /// The vocabulary is in GPT-2's alphabet for bytes, and words are given as the bytes that it stands for.
  bool byte_level = false;
};

/// Byte pair encoding (Sennrich et al., 2016) of words into ids, equal to `tokenizers`' BPE without dropout.
/// It does not cut a text into words: see split_words. Immutable; safe to share between threads (each thread
/// keeps the ids of words that it has seen).
class BpeModel {
 public:
  /// What the views point to is needed only during the call. Throws Error naming a token that a merge or
  /// unk_token asks for and the vocabulary lacks.
  BpeModel(std::span<const BpeToken> vocabulary, std::span<const BpeMerge> merges, BpeOptions options);

  /// Appends the ids of a word: bytes with byte_level, else UTF-8.
  void encode(std::string_view word, std::vector<TokenId>& ids) const;

  /// The same with the number of bytes of the word that each id covers, for offsets. Characters that are left
  /// out are covered by none, as in `tokenizers`.
  void encode(std::string_view word, std::vector<BpeSymbol>& symbols) const;

  /// The id of the token that is written so in the vocabulary.
  std::optional<TokenId> token_id(std::string_view token) const;

  const BpeOptions& options() const { return options_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  // The ids of single characters, or of bytes with byte_level, at one kind of place in a word.
  struct Characters {
    std::array<TokenId, 256> low;  // kUnknown where there is none
    FlatTable<TokenId> high;       // code points from 256 on
  };
  static constexpr TokenId kUnknown = -1;

  TokenId require_token(std::string_view token, std::string_view asked_by) const;
  void read_merges(std::span<const BpeMerge> merges);
  void read_characters(std::span<const BpeToken> vocabulary);
  void read_character(std::string_view text, TokenId id, std::size_t place);
  void read_words(std::span<const BpeToken> vocabulary);
  void read_fallback_bytes();
  std::size_t place_in_word(bool is_first, bool is_last) const;
  std::string written(std::string_view character, std::size_t place) const;
  bool append_fallback(std::string_view character, std::size_t place, std::vector<BpeSymbol>& symbols) const;
  void append_characters(std::string_view word, std::vector<BpeSymbol>& symbols) const;
  void encode_anew(std::string_view word, std::vector<BpeSymbol>& symbols) const;

  BpeOptions options_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> vocabulary_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> words_;  // with ignore_merges
  std::vector<Characters> characters_;                                     // by place_in_word
  std::array<TokenId, 256> fallback_bytes_;
  std::optional<TokenId> unk_id_;
  BpeMerges merges_;
  std::uint64_t cache_key_;
};

}  // namespace zoo
