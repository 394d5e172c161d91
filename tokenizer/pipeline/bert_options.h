#pragma once

#include <optional>

namespace zoo {

/// What BERT does to a text before it is split (Devlin et al., 2019; its BasicTokenizer).
struct BertNormalizerOptions {
  bool clean_text = true;             // control characters go, white space becomes spaces
  bool handle_chinese_chars = true;   // spaces around each ideograph
  std::optional<bool> strip_accents;  // as lowercase says, if it is not given
  bool lowercase = true;

  bool strips_accents() const { return strip_accents.value_or(lowercase); }
};

}  // namespace zoo
