#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {

/// The bytes of a model learnt from the lines of `texts`, which are UTF-8. Throws Error with the cause.
std::string train_sentencepiece(std::span<const std::string_view> texts, const SentencePieceOptions& options);

}  // namespace zoo
