#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/training/metrics/meters.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Which special tokens a model's texts need, and what stands around them.
enum class TaskTextStyle {
  kPlain,           ///< none: a language model
  kPadded,          ///< <pad>: a decoder that classifies
  kEncoder,         ///< [CLS] … [SEP], and [MASK]
  kEncoderDecoder,  ///< … </s>, with <extra_id_0>, … for span corruption
};

struct TokenizerRequest {
  std::string choice;  // --tokenizer
  std::int64_t vocab_size = 2000;
  TaskTextStyle style = TaskTextStyle::kPlain;
  std::int64_t sentinels = 0;
};

/// What `choice` asks for (see choose_tokenizer), with the special tokens of the style: what is learnt from
/// `text` gets them, a directory must have them. Throws Error naming the token that is missing.
std::unique_ptr<Tokenizer> choose_task_tokenizer(const TokenizerRequest& request, std::string_view text);

/// Throws Error naming --tokenizer and what the style needs and the tokenizer lacks.
void require_special_tokens(const Tokenizer& tokenizer, TaskTextStyle style);

/// The ids of <extra_id_0>, <extra_id_1>, …, as many as there are.
std::vector<TokenId> sentinels_of(const Tokenizer& tokenizer);

/// By id, whether a token begins a word; empty where tokens do not tell: each is a word then.
std::vector<bool> word_beginnings(const Tokenizer& tokenizer);

}  // namespace zoo
