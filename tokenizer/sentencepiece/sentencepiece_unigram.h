#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/unigram_segmentation.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

/// The library's ids, computed faster, for the most common models: unigram (Kudo, 2018) without user-defined
/// symbols. Immutable; safe to share between threads.
class SentencePieceUnigram {
 public:
  static bool can_run(const SentencePieceFile& file) {
    const TokenIds bytes = ids_of_type(file, Type::byte);
    const bool has_bytes =
        bytes.size() == 256 && file.pieces[static_cast<std::size_t>(bytes[0])].text == "<0x00>";
    return file.is_unigram && !file.space_is_suffix && file.escapes_spaces &&
           ids_of_type(file, Type::unknown).size() == 1 && ids_of_type(file, Type::user_defined).empty() &&
           ids_of_type(file, Type::unused).empty() && !ids_of_type(file, Type::normal).empty() &&
           file.has_byte_fallback == has_bytes;
  }

  /// The file must fulfil can_run.
  explicit SentencePieceUnigram(const SentencePieceFile& file)
      : unk_id_(ids_of_type(file, Type::unknown).front()),
        adds_prefix_(file.adds_prefix),
        removes_extra_spaces_(file.removes_extra_spaces) {
    std::vector<ByteTrie::Entry> entries;
    float lowest = std::numeric_limits<float>::max();
    for (std::size_t id = 0; id < file.pieces.size(); ++id) {
      const SentencePieceFile::Piece& piece = file.pieces[id];
      scores_.push_back(piece.score);
      if (piece.type != Type::normal) continue;
      entries.push_back({piece.text, static_cast<TokenId>(id)});
      lowest = std::min(lowest, piece.score);
    }
    trie_ = ByteTrie(entries);
    unknown_score_ = lowest - UnigramSegmentation<float>::kUnknownPenalty;
    if (file.has_byte_fallback) bytes_ = ids_of_type(file, Type::byte);
    if (!file.charsmap.empty()) charsmap_.emplace(file.charsmap);
  }

  /// Appends the ids of a UTF-8 text.
  void encode(std::string_view text, TokenIds& ids) const {
    static thread_local std::string normalized;
    static thread_local UnigramSegmentation<float> best;
    normalize(text, normalized);
    best.find(trie_, scores_, unknown_score_, unk_id_, normalized);
    const auto& ends = best.ends();
    bool after_unknown = false;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      const auto& step = best.step(*end);
      const bool is_unknown = step.id == unk_id_;
      if (is_unknown && !bytes_.empty()) {
        for (std::size_t i = step.begin; i < *end; ++i)
          ids.push_back(bytes_[static_cast<unsigned char>(normalized[i])]);
      } else if (!is_unknown || !after_unknown) {
        ids.push_back(step.id);
      }
      after_unknown = is_unknown;
    }
  }

 private:
  using Type = SentencePieceFile::Type;

  static TokenIds ids_of_type(const SentencePieceFile& file, Type type) {
    TokenIds ids;
    for (std::size_t id = 0; id < file.pieces.size(); ++id)
      if (file.pieces[id].type == type) ids.push_back(static_cast<TokenId>(id));
    return ids;
  }

  // Applies the longest rule at `at`, else copies one character; advances `at`.
  std::string_view rewritten_at(std::string_view text, std::size_t& at) const {
    const std::size_t begin = at;
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool next_is_ascii = at + 1 == text.size() || static_cast<unsigned char>(text[at + 1]) < 0x80;
    const bool is_plain = byte < 0x80 && next_is_ascii && (!charsmap_ || charsmap_->keeps(byte));
    if (!is_plain && charsmap_) {
      if (const auto match = charsmap_->longest(text.substr(at))) {
        at += match->size;
        return match->replacement;
      }
    }
    next_code_point(text, at);
    return text.substr(begin, at - begin);
  }

  void normalize(std::string_view text, std::string& normalized) const {
    normalized.clear();
    std::size_t at = 0;
    while (removes_extra_spaces_ && at < text.size()) {
      std::size_t next = at;
      if (rewritten_at(text, next) != " ") break;
      at = next;
    }
    if (at == text.size()) return;
    if (adds_prefix_) normalized += kSpaceMark;
    bool after_space = removes_extra_spaces_;
    while (at < text.size()) {
      std::string_view part = rewritten_at(text, at);
      while (after_space && part.starts_with(' ')) part.remove_prefix(1);
      for (const char c : part) {
        if (c == ' ') {
          normalized += kSpaceMark;
        } else {
          normalized += c;
        }
      }
      if (!part.empty()) after_space = removes_extra_spaces_ && part.back() == ' ';
    }
    while (removes_extra_spaces_ && normalized.ends_with(kSpaceMark))
      normalized.resize(normalized.size() - kSpaceMark.size());
  }

  ByteTrie trie_;
  std::vector<float> scores_;
  float unknown_score_ = 0;
  TokenId unk_id_ = 0;
  TokenIds bytes_;  // ids of "<0x00>" and so on; empty without byte fallback
  std::optional<Charsmap> charsmap_;
  bool adds_prefix_ = true, removes_extra_spaces_ = true;
};

}  // namespace zoo
