#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/text/normal_form.h"
#include "tokenizer/text/text_pattern.h"

namespace zoo {

/// Changes a text before it is split: a normalizer of tokenizer.json. It never fails.
using Normalizer = std::function<void(AlignedText&)>;

/// What BERT does to a text before it is split (Devlin et al., 2019; its BasicTokenizer).
struct BertNormalizerOptions {
  bool clean_text = true;             // control characters go, white space becomes spaces
  bool handle_chinese_chars = true;   // spaces around each ideograph
  std::optional<bool> strip_accents;  // as lowercase says, if it is not given
  bool lowercase = true;

  bool strips_accents() const { return strip_accents.value_or(lowercase); }
};

Normalizer normal_form(NormalForm form);
Normalizer bert_normalizer(const BertNormalizerOptions& options);
Normalizer lowercase_normalizer();
Normalizer strip_accents_normalizer();
/// White space at either end goes.
Normalizer strip_normalizer(bool left, bool right);
Normalizer replace_normalizer(TextPattern pattern, std::string content);
/// Nothing is put before an empty text.
Normalizer prepend_normalizer(std::string text);
/// Sentencepiece's rules for machine translation: control characters go, odd spaces become plain ones.
Normalizer nmt_normalizer();
/// Each byte becomes the character that stands for it in GPT-2's vocabulary.
Normalizer byte_level_normalizer();
/// The rules of a sentencepiece model: a trie of texts and what they become. Throws Error if the table is
/// damaged.
Normalizer precompiled_normalizer(std::string_view charsmap);
Normalizer normalizer_sequence(std::vector<Normalizer> normalizers);

}  // namespace zoo
