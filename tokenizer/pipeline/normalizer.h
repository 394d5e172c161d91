#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tokenizer/text/text_pattern.h"
#include "tokenizer/text/unicode.h"

namespace zoo {

/// A normalizer of tokenizer.json. Throws Error as TextWork::wrote() and TextPattern::find().
using Normalizer = std::function<void(AlignedText&)>;

/// BERT's normalization (Devlin et al., 2019; its BasicTokenizer).
struct BertNormalizerOptions {
  bool clean_text = true;             // removes control characters; white space becomes spaces
  bool handle_chinese_chars = true;   // puts spaces around each ideograph
  std::optional<bool> strip_accents;  // default: the value of lowercase
  bool lowercase = true;

  bool strips_accents() const { return strip_accents.value_or(lowercase); }
};

/// What clean_text makes of a character; kNoCharacter if it removes it.
inline constexpr char32_t kNoCharacter = 0x110000;
char32_t cleaned(char32_t c);

Normalizer normal_form(NormalForm form);
Normalizer bert_normalizer(const BertNormalizerOptions& options);
void lowercase_all(AlignedText& text);
void remove_accents(AlignedText& text);
/// Removes white space at the ends.
Normalizer strip_normalizer(bool left, bool right);
Normalizer replace_normalizer(TextPattern pattern, std::string content);
/// Does not change an empty text.
Normalizer prepend_normalizer(std::string text);
/// Sentencepiece's rules for translation: no control characters, and unusual spaces become plain ones.
void apply_nmt_rules(AlignedText& text);
/// Replaces each byte by its character in GPT-2's alphabet.
void map_to_byte_level(AlignedText& text);
/// The normalization table of a sentencepiece model. Throws Error if it is damaged.
Normalizer precompiled_normalizer(std::string_view charsmap);
/// The same normalizer, with this name in messages.
Normalizer named_normalizer(std::string name, Normalizer normalizer);

}  // namespace zoo
