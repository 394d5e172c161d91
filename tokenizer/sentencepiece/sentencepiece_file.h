#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The content of a sentencepiece model file.
struct SentencePieceFile {
  enum class Type : std::uint64_t { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;
  std::string normalization;  // name of the rules
  std::string charsmap;       // table of the rules
  bool is_unigram = true, has_byte_fallback = false;
  bool adds_prefix = true, removes_extra_spaces = true, escapes_spaces = true, space_is_suffix = false;

  /// Throws Error "WHAT: …" unless the protobuf is complete, the normalization table has no offsets beyond
  /// its end and the pieces fit the library's fixed-size buffers: a damaged file would crash the library.
  static SentencePieceFile parse(std::string_view model, const std::string& what);

  /// Throws Error "WHAT: …" if a piece is not UTF-8, which the library accepts.
  void require_utf8_pieces(const std::string& what) const;

  /// True if Hugging Face's T5Tokenizer, which builds a tokenizer from the pieces, gives the same ids.
  bool is_like_t5() const {
    return is_unigram && !has_byte_fallback && removes_extra_spaces && normalization == "nmt_nfkc";
  }
};

}  // namespace zoo
