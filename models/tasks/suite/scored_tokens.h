#pragma once

#include <string>
#include <vector>

#include "models/tasks/generate_session.h"

namespace zoo {

/// Tokens whose last `scored`, fewer than all, are scored given those before them.
struct ScoredTokens {
  TokenIds ids;
  std::size_t scored = 0;
};

struct Likelihood {
  double log_probability = 0;  // summed over the scored tokens, in nats
  bool greedy = false;         // each of them has the largest logit
};

/// Scores at least one token of each row; equal contexts and long shared beginnings of contexts are read
/// once.
std::vector<Likelihood> likelihoods(DecodingModel& model, const std::vector<ScoredTokens>& rows);

/// Texts to tokens as lm-evaluation-harness' `hf` backend has them. Throws Error where no token is left to
/// score, or more than the model sees.
struct SuiteEncoder {
  explicit SuiteEncoder(const GenerateSession& session);

  /// With special tokens, unless the text begins with the first of them.
  TokenIds encode(const std::string& text) const;
  /// The tokens after as many as the context has by itself; white space at its end belongs to the
  /// continuation.
  ScoredTokens pair(const std::string& context, const std::string& continuation) const;
  /// Windows that score each token of the text once, with as many before it as fit.
  std::vector<ScoredTokens> windows(const std::string& text) const;

  const Tokenizer& tokenizer;
  TokenIds first;  // bos or eos, which stands for an empty context; none if the tokenizer has neither
  std::int64_t max_length = 2048;  // tokens that the model sees; the harness' default
};

}  // namespace zoo
