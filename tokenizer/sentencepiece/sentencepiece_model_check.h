#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// What Hugging Face's T5Tokenizer takes for granted of a spiece.model: it builds its own tokenizer from the
/// pieces.
struct SentencePieceTraits {
  bool is_unigram = true;
  bool has_byte_fallback = false;
  bool removes_extra_whitespaces = true;
  std::string normalization;

  bool is_like_t5() const {
    return is_unigram && !has_byte_fallback && removes_extra_whitespaces && normalization == "nmt_nfkc";
  }
};

/// The library follows offsets in a model file without checking them, so a damaged file would crash it.
/// Throws Error "WHAT: …" unless the protobuf is whole, the normalization table stays inside itself, and the
/// pieces are such that the library's fixed-size buffers hold.
SentencePieceTraits check_sentencepiece_model(std::string_view model, const std::string& what);

}  // namespace zoo
