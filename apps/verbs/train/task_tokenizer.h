#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/training/metrics/task_metrics.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Special tokens that a model's texts need, and their positions.
enum class TaskTextStyle {
  kPlain,           ///< none: a language model
  kPadded,          ///< <pad>: a decoder for classification
  kEncoder,         ///< [CLS] … [SEP], and [MASK]
  kEncoderDecoder,  ///< … </s>, with <extra_id_0>, … for span corruption
};

struct TokenizerRequest {
  std::string choice;  // --tokenizer
  std::int64_t vocab_size = 2000;
  TaskTextStyle style = TaskTextStyle::kPlain;
  std::int64_t sentinels = 0;
};

/// The tokenizer of `choice` (see choose_tokenizer), with the style's special tokens: a tokenizer trained on
/// `text` gets them, a directory must have them. Throws Error naming a missing token.
std::unique_ptr<Tokenizer> choose_task_tokenizer(const TokenizerRequest& request, std::string_view text);

/// Throws Error naming --tokenizer and a special token of the style that the tokenizer lacks.
void require_special_tokens(const Tokenizer& tokenizer, TaskTextStyle style);

/// The ids of the tokenizer's <extra_id_0>, <extra_id_1>, …
TokenIds sentinels_of(const Tokenizer& tokenizer);

/// By id, whether a token begins a word; empty if tokens do not show it, so that each is a word.
std::vector<bool> word_beginnings(const Tokenizer& tokenizer);

}  // namespace zoo
