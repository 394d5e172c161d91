#include "models/tasks/suite/scored_tokens.h"

#include <algorithm>

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "models/generation/decoding_batch.h"
#include "models/generation/logits_rules.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo {

std::vector<Likelihood> likelihoods(DecodingModel& model, const std::vector<ScoredTokens>& rows) {
  const c10::InferenceMode inference;
  std::vector<TokenIds> contexts, unread;
  std::size_t most = 0;
  for (const ScoredTokens& row : rows) {
    contexts.emplace_back(row.ids.begin(), row.ids.end() - static_cast<std::ptrdiff_t>(row.scored));
    most = std::max(most, row.scored);
  }
  DecodingBatch batch(model, contexts, {.max_new_tokens = static_cast<std::int64_t>(most)});
  batch.next_logits();
  DecodingSession& session = batch.session();
  // A context's last token predicts the first scored one, and is read again with these.
  for (std::int64_t row = 0; row < session.rows(); ++row) {
    session.rewind(row, std::ssize(contexts[row]) - 1);
    unread.emplace_back(rows[row].ids.begin() + session.length(row), rows[row].ids.end() - 1);
  }
  const at::Tensor logits = session.read(unread, DecodingSession::Logits::kAll);
  std::vector<Likelihood> found;
  for (std::int64_t row = 0; row < session.rows(); ++row) {
    const std::int64_t end = std::ssize(unread[row]),
                       begin = end - static_cast<std::int64_t>(rows[row].scored);
    const at::Tensor own = log_probabilities_of(logits[row].slice(0, begin, end)).cpu();
    const at::Tensor ids = at::tensor(rows[row].ids, at::kLong).slice(0, begin - end);
    found.push_back({own.gather(1, ids.unsqueeze(1)).sum().item<double>(), own.argmax(1).equal(ids)});
  }
  return found;
}

SuiteEncoder::SuiteEncoder(const GenerateSession& session) : tokenizer(*session.tokenizer) {
  const auto bos = tokenizer.special_id(SpecialToken::bos), id = bos ? bos : tokenizer.eos_id();
  if (id) first = {*id};
  const nlohmann::json &all = *session.checkpoint.json, config = all.value("text_config", all);
  if (const auto limit = tokenizer.limits().max_length) max_length = static_cast<std::int64_t>(*limit);
  if (session.checkpoint.config.takes_positions()) max_length = session.checkpoint.config.max_length();
  for (const char* key : {"n_ctx", "max_position_embeddings", "n_positions"})
    max_length = config.value(key, max_length);
}

TokenIds SuiteEncoder::encode(const std::string& text) const {
  const bool begun = !first.empty() && text.starts_with(tokenizer.decode_with_special_tokens(first));
  return tokenizer.encode(text, EncodeOptions{.add_special_tokens = !begun, .with_offsets = false}).ids;
}

ScoredTokens SuiteEncoder::pair(const std::string& context, const std::string& continuation) const {
  TokenIds ids = context.empty() ? first : encode(chat::stripped(context, chat::Side::right)), all;
  if (ids.empty()) throw Error("the context has no token that the continuation could follow");
  if (!context.empty()) all = encode(context + continuation);
  if (context.empty()) all = tokenizer.encode(continuation);
  if (context.empty() && (all.empty() || all[0] != ids[0])) all.insert(all.begin(), ids[0]);
  const std::int64_t scored = std::ssize(all) - std::ssize(ids), beyond = std::ssize(all) - max_length - 1;
  if (scored < 1) throw Error("the continuation adds no token to its context");
  if (scored > max_length) throw Error(scored, " tokens exceed the model's context of ", max_length);
  ids.insert(ids.end(), all.end() - scored, all.end());
  if (beyond > 0) ids.erase(ids.begin(), ids.begin() + beyond);
  return {std::move(ids), static_cast<std::size_t>(scored)};
}

std::vector<ScoredTokens> SuiteEncoder::windows(const std::string& text) const {
  if (first.empty())
    throw Error("the tokenizer has neither a bos nor an eos token, before which no text begins");
  TokenIds ids = encode(text);
  ids.insert(ids.begin(), first[0]);
  std::vector<ScoredTokens> windows;
  for (std::int64_t done = 1, end = 1; done < std::ssize(ids); done = end) {
    end = std::min<std::int64_t>(std::ssize(ids), done + max_length);
    const std::int64_t begin = std::max<std::int64_t>(0, end - max_length - 1);
    windows.push_back({{ids.begin() + begin, ids.begin() + end}, static_cast<std::size_t>(end - done)});
  }
  return windows;
}

}  // namespace zoo
