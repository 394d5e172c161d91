#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/base/gguf_writer.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Sentencepiece's mark of a space.
constexpr std::string_view kGgufSpace = "\u2581";

/// Kinds of tokens, with llama.cpp's numbers.
enum GgufTokenType : std::int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// How byte-level BPE with a name in 'tokenizer.ggml.pre' splits words: by each pattern in turn.
struct GgufSplitting {
  std::string_view names;  // between spaces
  std::vector<std::string> patterns;
  bool keeps_whole_words = false;  // a word that is a token needs no merges
  bool begins_text = false;        // with BOS, unless the file overrides it
  bool composes = false;           // Unicode's NFC
};

const std::vector<GgufSplitting>& gguf_splittings();

/// The metadata of a GGUF file for the tokenizer, with unused tokens up to `vocab_size`. Throws Error if GGUF
/// cannot describe it: expected byte-level BPE or sentencepiece's BPE with byte fallback.
GgufMetadata gguf_metadata_of(const Tokenizer& tokenizer, std::int64_t vocab_size);

}  // namespace zoo
