#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/base/gguf_writer.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

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

/// A tokenizer as metadata of a GGUF file.
struct GgufTokenizer {
  GgufMetadata metadata;
  std::vector<std::string> lost;  // rules of added tokens, and others, that GGUF has no keys for
};

/// Has `vocab_size` tokens, as the model has rows; `config` is its config.json. Reads the metadata again to
/// compare ids. Throws Error for others than byte-level BPE and sentencepiece's BPE with byte fallback.
GgufTokenizer gguf_tokenizer_of(const Tokenizer& tokenizer, const nlohmann::json& config,
                                std::int64_t vocab_size);

}  // namespace zoo
