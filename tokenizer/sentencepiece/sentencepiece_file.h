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
  std::string charsmap;  // the normalization table
  bool is_unigram = true, has_byte_fallback = false;
  bool adds_prefix = true, removes_extra_spaces = true, escapes_spaces = true, space_is_suffix = false;

  /// Throws Error "WHAT: …" as check_sentencepiece_model does, and if a piece is not UTF-8.
  static SentencePieceFile parse(std::string_view model, const std::string& what);
};

}  // namespace zoo
