#pragma once

#include "tokenizer/text/aligned_text.h"

namespace zoo {

/// Unicode's normal forms (UAX 15).
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Converts a text to a normal form, with the alignment of `tokenizers`.
void to_normal_form(AlignedText& text, NormalForm form);

}  // namespace zoo
