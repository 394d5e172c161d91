#include "models/generation/logits_filters.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "data/base/error.h"

namespace zoo {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Changes the logits of one row, starting at `logits`.
using RowRule = std::function<void(float* logits, std::int64_t vocab_size, const RowHistory& row)>;

LogitsFilter by_row(RowRule rule) {
  return [rule = std::move(rule)](const at::Tensor& logits, const RowHistories& rows) {
    at::Tensor changed = logits.to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    const std::int64_t vocab_size = changed.size(1);
    auto* row_logits = changed.mutable_data_ptr<float>();
    for (const RowHistory& row : rows) {
      rule(row_logits, vocab_size, row);
      row_logits += vocab_size;
    }
    return changed;
  };
}

RowRule logit_bias(const HistoryOptions& options, const HistoryContext& context) {
  for (const auto& [id, bias] : options.logit_bias) {
    require_model_id("logit_bias: ", id, context.vocab_size);
    if (!std::isfinite(bias)) throw Error("logit_bias: the bias of id ", id, " must be a number, got ", bias);
  }
  return [biases = options.logit_bias](float* logits, std::int64_t, const RowHistory&) {
    for (const auto& [id, bias] : biases) logits[id] += static_cast<float>(bias);
  };
}

RowRule repetition_penalty(double given) {
  if (!(given > 0) || !std::isfinite(given))
    throw Error("repetition_penalty must be a positive number, got ", given);
  return [penalty = static_cast<float>(given)](float* logits, std::int64_t, const RowHistory& row) {
    for (const TokenId id : std::set<TokenId>(row.tokens->begin(), row.tokens->end()))
      logits[id] = logits[id] < 0 ? logits[id] * penalty : logits[id] / penalty;
  };
}

RowRule presence_and_frequency(double presence, double frequency) {
  if (!std::isfinite(presence)) throw Error("presence_penalty must be a number, got ", presence);
  if (!std::isfinite(frequency)) throw Error("frequency_penalty must be a number, got ", frequency);
  return [=](float* logits, std::int64_t, const RowHistory& row) {
    std::map<TokenId, int> counts;
    for (std::size_t i = row.given; i < row.tokens->size(); ++i) ++counts[(*row.tokens)[i]];
    for (const auto& [id, count] : counts)
      logits[id] -= static_cast<float>(presence + frequency * static_cast<double>(count));
  };
}

RowRule no_repeat_ngram(std::int64_t size) {
  if (size < 0) throw Error("no_repeat_ngram_size must not be negative, got ", size);
  return [size](float* logits, std::int64_t, const RowHistory& row) {
    const TokenIds& tokens = *row.tokens;
    if (std::ssize(tokens) < size) return;
    const auto last = tokens.end() - (size - 1);
    for (auto first = tokens.begin(); first != last; ++first)
      if (std::equal(last, tokens.end(), first)) logits[first[size - 1]] = kForbidden;
  };
}

RowRule bad_words(std::vector<TokenIds> words, const HistoryContext& context) {
  const TokenIds& ends = context.eos_token_ids;
  for (const TokenIds& word : words) {
    if (word.empty()) throw Error("bad_words: a sequence is empty");
    for (const TokenId id : word) require_model_id("bad_words: ", id, context.vocab_size);
  }
  std::erase_if(words, [&](const TokenIds& word) {
    return word.size() == 1 && std::ranges::find(ends, word[0]) != ends.end();
  });
  return [words](float* logits, std::int64_t, const RowHistory& row) {
    const TokenIds& tokens = *row.tokens;
    for (const TokenIds& word : words) {
      const auto before = std::ssize(word) - 1;  // tokens of it that stand at the end already
      if (before <= std::ssize(tokens) && std::equal(word.begin(), word.end() - 1, tokens.end() - before))
        logits[word.back()] = kForbidden;
    }
  };
}

RowRule minimum_length(const HistoryOptions& options, const HistoryContext& context) {
  if (options.min_length < 0) throw Error("min_length must not be negative, got ", options.min_length);
  if (options.min_new_tokens < 0)
    throw Error("min_new_tokens must not be negative, got ", options.min_new_tokens);
  const std::int64_t least = options.min_new_tokens > 0 ? 0 : options.min_length;
  return [length = least, new_tokens = options.min_new_tokens, ends = context.eos_token_ids](
             float* logits, std::int64_t vocab_size, const RowHistory& row) {
    if (static_cast<std::int64_t>(row.tokens->size()) >= length && row.new_tokens() >= new_tokens) return;
    for (const TokenId id : ends)
      if (id < vocab_size) logits[id] = kForbidden;
  };
}

void force(float* logits, std::int64_t vocab_size, const TokenIds& ids) {
  std::fill(logits, logits + vocab_size, kForbidden);
  for (const TokenId id : ids) logits[id] = 0;
}

RowRule forced_tokens(const HistoryOptions& options, const HistoryContext& context) {
  if (const auto& id = options.forced_bos_token_id)
    require_model_id("forced_bos_token_id: ", *id, context.vocab_size);
  for (const TokenId id : options.forced_eos_token_ids)
    require_model_id("forced_eos_token_id: ", id, context.vocab_size);
  return [first = options.forced_bos_token_id, last = options.forced_eos_token_ids,
          count = context.max_new_tokens](float* logits, std::int64_t vocab_size, const RowHistory& row) {
    if (first && row.tokens->size() == 1) force(logits, vocab_size, {static_cast<TokenId>(*first)});
    if (!last.empty() && row.new_tokens() == count - 1) force(logits, vocab_size, last);
  };
}

RowRule suppressed_tokens(const HistoryOptions& options) {
  for (const TokenIds* ids : {&options.suppressed, &options.suppressed_first}) {
    for (const TokenId id : *ids)
      if (id < 0) throw Error("suppress_tokens: the id ", id, " is negative");
  }
  const bool forces = options.forced_bos_token_id.has_value();
  return [forces, always = options.suppressed, first = options.suppressed_first](
             float* logits, std::int64_t vocab_size, const RowHistory& row) {
    const std::int64_t begin = forces && row.given == 1 ? 1 : 0;
    const auto forbid = [&](const TokenIds& ids) {
      for (const TokenId id : ids)
        if (id < vocab_size) logits[id] = kForbidden;
    };
    forbid(always);
    if (row.new_tokens() == begin) forbid(first);
  };
}

}  // namespace

LogitsFilters make_history_filters(const HistoryOptions& options, const HistoryContext& context) {
  LogitsFilters filters;
  const auto add = [&](bool wanted, RowRule rule) {
    if (wanted) filters.push_back(by_row(std::move(rule)));
  };
  add(!options.logit_bias.empty(), logit_bias(options, context));
  add(options.repetition_penalty != 1.0, repetition_penalty(options.repetition_penalty));
  add(options.presence_penalty != 0 || options.frequency_penalty != 0,
      presence_and_frequency(options.presence_penalty, options.frequency_penalty));
  add(options.no_repeat_ngram_size != 0, no_repeat_ngram(options.no_repeat_ngram_size));
  add(!options.bad_words.empty(), bad_words(options.bad_words, context));
  add(options.min_length != 0 || options.min_new_tokens != 0, minimum_length(options, context));
  add(options.forced_bos_token_id || !options.forced_eos_token_ids.empty(), forced_tokens(options, context));
  add(!options.suppressed.empty() || !options.suppressed_first.empty(), suppressed_tokens(options));
  return filters;
}

}  // namespace zoo
