#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/flat_table.h"
#include "tokenizer/pipeline/token_model.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A part of a word: its current token and its number of bytes in the vocabulary's spelling of the word.
struct BpeSymbol {
  TokenId id;
  std::uint32_t length;
};

/// The merges of a BPE model (Sennrich et al., 2016), indexed by their pair.
class BpeMerges {
 public:
  struct Merge {
    std::uint32_t rank;  // position in the list; lower ranks merge first
    TokenId id;          // the merged token
  };

  void insert(TokenId left, TokenId right, Merge merge) { merges_[pair_key(left, right)] = merge; }
  const Merge* find(TokenId left, TokenId right) const { return merges_.find(pair_key(left, right)); }

  /// Merges neighbours of `symbols` until no merge applies: the lowest rank first, of equal ranks the
  /// leftmost. O(n log n) in the number of symbols. Returns the number of pairs examined.
  std::size_t apply(std::vector<BpeSymbol>& symbols) const;

 private:
  std::size_t apply_by_scanning(std::vector<BpeSymbol>& symbols) const;
  std::size_t apply_by_queue(std::vector<BpeSymbol>& symbols) const;

  FlatTable<Merge> merges_;
};

/// The options of tokenizer.json's model of type BPE, with its names.
struct BpeOptions {
  std::optional<std::string> unk_token;  // if absent, characters without a token are dropped
  bool fuse_unk = false;                 // one unk_token for a run of unknown characters
  bool byte_fallback = false;            // unknown characters become <0xC3> <0xA9> if those are tokens
  bool ignore_merges = false;            // a word in the vocabulary is one token, without merging
  std::string continuing_subword_prefix, end_of_word_suffix;
  /// The vocabulary is in GPT-2's byte alphabet, and words are given as bytes.
  bool byte_level = false;
};

/// Byte pair encoding (Sennrich et al., 2016) of words into ids, equal to `tokenizers`' BPE without dropout.
/// split_words splits a text into words. Immutable; safe to share between threads, each with its own cache.
class BpeModel final : public TokenModel {
 public:
  /// The rank of a merge is its position. Throws Error naming a token that the vocabulary lacks.
  BpeModel(const std::vector<VocabularyEntry>& vocabulary, const MergePairs& merges, BpeOptions options);

  /// Appends the ids of a word: bytes if byte_level, else UTF-8.
  void encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const override;

  /// Sets the ids of a word and the number of bytes of each in the vocabulary's spelling of the word. As in
  /// `tokenizers`, no id covers a dropped character.
  void encode(std::string_view word, std::vector<BpeSymbol>& symbols) const;

  /// The id of a token in the vocabulary's spelling.
  std::optional<TokenId> token_id(std::string_view token) const;

 private:
  static constexpr TokenId kUnknown = CharacterIds::kNone;

  TokenId require_token(std::string_view token, std::string_view asked_by) const;
  void read_merges(const MergePairs& merges);
  void read_characters(const std::vector<VocabularyEntry>& vocabulary);
  void read_character(std::string_view text, TokenId id, std::size_t place);
  void read_words(const std::vector<VocabularyEntry>& vocabulary);
  void read_fallback_bytes();
  std::size_t place_in_word(bool is_first, bool is_last) const;
  std::string written(std::string_view character, std::size_t place) const;
  bool append_fallback(std::string_view character, std::size_t place, std::vector<BpeSymbol>& symbols) const;
  void append_characters(std::string_view word, std::vector<BpeSymbol>& symbols) const;
  void append_ranges(std::string_view word, const std::vector<BpeSymbol>& symbols,
                     std::vector<ByteRange>& ranges) const;

  BpeOptions options_;
  TextTable<TokenId> vocabulary_;
  TextTable<TokenId> words_;              // for ignore_merges
  std::vector<CharacterIds> characters_;  // of bytes if byte_level; indexed by place_in_word
  std::array<TokenId, 256> fallback_bytes_;
  std::optional<TokenId> unk_id_;
  BpeMerges merges_;
  std::uint64_t cache_key_;
};

}  // namespace zoo
