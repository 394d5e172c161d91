#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tokenizer/encoding.h"

namespace zoo {

/// Rules of transformers' question answering pipeline (4.49, its last version).
struct AnswerRules {
  std::int64_t max_answer_length = 15;  // tokens
  std::int64_t top_k = 1;
  bool impossible = false;     // "no answer" is one of the answers, with the least score of all windows
  bool align_to_words = true;  // an answer begins and ends with whole words
};

struct Answer {
  ByteRange range;     // of the context; empty: no answer
  float score = 0.0F;  // product of the probabilities of first and last token
};

/// Logits of a window, [T] each.
struct SpanLogits {
  at::Tensor start, end;
};

/// Collects the answers of all windows on a context.
class AnswerCollector {
 public:
  /// The position of `cls` stands for "no answer": it takes part in the softmax.
  AnswerCollector(const AnswerRules& rules, std::optional<TokenId> cls) : rules_(rules), cls_(cls) {}

  /// Adds the best spans of a window, whose second text is the context.
  void add(const Encoding& window, const SpanLogits& logits);

  /// The best answers, best first. Windows that overlap may give the same one twice.
  std::vector<Answer> best() const;

 private:
  std::vector<float> probabilities(const at::Tensor& logits, const Encoding& window) const;

  AnswerRules rules_;
  std::optional<TokenId> cls_;
  std::vector<Answer> answers_;
  float null_score_ = 1.0F;
};

}  // namespace zoo
