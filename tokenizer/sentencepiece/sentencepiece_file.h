#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// What is in a sentencepiece model file, for those who run it without the library.
struct SentencePieceFile {
  enum class Type : std::uint64_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
  };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;
  std::string normalization;  // the name of its rules
  std::string charsmap;       // the table of them
  bool is_unigram = true, has_byte_fallback = false;
  bool adds_prefix = true, removes_extra_spaces = true, escapes_spaces = true, space_is_suffix = false;

  /// The library follows offsets in a model file without checking them: a damaged file would crash it. Throws
  /// Error "WHAT: …" unless the protobuf is whole, the normalization table stays inside itself, and the
  /// pieces fit the library's fixed-size buffers.
  static SentencePieceFile parse(std::string_view model, const std::string& what);

  /// The library accepts pieces that are not UTF-8; this throws Error "WHAT: …".
  void require_utf8_pieces(const std::string& what) const;

  /// Hugging Face's T5Tokenizer takes this for granted: it builds its own tokenizer from the pieces.
  bool is_like_t5() const {
    return is_unigram && !has_byte_fallback && removes_extra_spaces && normalization == "nmt_nfkc";
  }
};

}  // namespace zoo
