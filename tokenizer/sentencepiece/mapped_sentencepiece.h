#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {

/// Vocabulary and special tokens of mapped_sentencepiece().
struct MappedVocabulary {
  std::unordered_map<std::string, TokenId> ids;  // of pieces and special tokens
  std::vector<std::string> special;              // split the text before the model runs; skipped by decode
  std::map<SpecialToken, std::string> roles;     // unk must be one
  std::vector<std::string> before, after;        // special tokens around each text
  /// A text may begin with a code between ">>" and "<<", such as a language, which is one token (Marian).
  bool reads_codes = false;
};

/// A sentencepiece model whose pieces have the ids of a separate vocab.json: Marian and M2M-100, as in
/// transformers without sacremoses. `files` are the names and contents that save() writes. Throws Error
/// naming `what` and a token of the template, or the unknown token, that the vocabulary lacks.
std::unique_ptr<Tokenizer> mapped_sentencepiece(SentencePieceTokenizer model, MappedVocabulary vocabulary,
                                                std::map<std::string, std::string> files,
                                                const std::string& what);

}  // namespace zoo
