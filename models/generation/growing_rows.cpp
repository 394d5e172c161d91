#include "models/generation/growing_rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include <ATen/ops/tensor.h>
#include <c10/util/irange.h>

#include "data/base/error.h"

namespace zoo {
namespace {

void check_prompts(const std::vector<TokenIds>& prompts, const TransformerConfig& config) {
  const std::int64_t limit = context_limit(config);
  for (const TokenIds& prompt : prompts) {
    if (prompt.empty()) throw Error("a prompt is empty: there is nothing to continue");
    const auto length = static_cast<std::int64_t>(prompt.size());
    if (length > limit) {
      throw Error("a prompt of ", length, " tokens is longer than the model's context of ", limit, " tokens");
    }
    for (const std::int64_t id : prompt) {
      if (id >= 0 && id < config.vocab_size) continue;
      throw Error("the id ", id, " is outside the model's vocabulary of ", config.vocab_size, " ids");
    }
  }
}

std::int64_t start_token(const TransformerConfig& config, std::int64_t given) {
  const std::int64_t start = given >= 0 ? given : config.decoder_start_token_id;
  if (start < 0 || start >= config.vocab_size) {
    throw Error("an encoder-decoder begins with decoder_start_token_id, which must be in [0, ",
                config.vocab_size, "), got ", start < 0 ? "none" : std::to_string(start));
  }
  return start;
}

}  // namespace

std::int64_t context_limit(const TransformerConfig& config) {
  const bool bounded =
      config.position == PositionKind::kLearned || config.position == PositionKind::kSinusoidal;
  return bounded ? config.max_positions : std::numeric_limits<std::int64_t>::max();
}

std::vector<TokenIds> first_tokens(const TransformerConfig& config, const std::vector<TokenIds>& prompts,
                                   std::int64_t decoder_start_token_id) {
  check_prompts(prompts, config);
  if (config.shape != Shape::kEncoderDecoder || prompts.empty()) return prompts;
  return std::vector<TokenIds>(prompts.size(), {start_token(config, decoder_start_token_id)});
}

GrowingRows::GrowingRows(DecodingModel& model, const std::vector<TokenIds>& prompts, const Options& options)
    : tokens_(first_tokens(model.config(), prompts, options.decoder_start_token_id)),
      starts_(prompts.size(), 0),
      limit_(context_limit(model.config())) {
  if (prompts.empty()) return;
  const bool has_encoder = model.config().shape == Shape::kEncoderDecoder;
  std::size_t longest = 0;
  for (const TokenIds& row : tokens_) longest = std::max(longest, row.size());
  const auto begin = static_cast<std::int64_t>(longest);
  // The last token is given, but never read.
  const std::int64_t capacity = begin + std::min(options.max_new_tokens - 1, limit_ - begin);

  std::vector<TokenIds> different;
  std::map<TokenIds, std::int64_t> places;
  for (const TokenIds& prompt : prompts) {
    const auto [place, is_new] = places.emplace(prompt, static_cast<std::int64_t>(different.size()));
    if (is_new) different.push_back(prompt);
    first_equal_.push_back(place->second);
  }
  session_ = has_encoder ? model.begin(different, capacity)
                         : model.begin(static_cast<std::int64_t>(different.size()), capacity);
}

at::Tensor GrowingRows::read_first() {
  std::vector<TokenIds> different(static_cast<std::size_t>(session_->rows()));
  for (const auto row : c10::irange(size())) {
    different[static_cast<std::size_t>(first_equal_[row])] = tokens_[row];
  }
  at::Tensor logits = session_->read(different);
  if (different.size() == size()) return logits;
  // Copied before the session is asked for anything else.
  logits = logits.index_select(0, at::tensor(first_equal_, at::kLong).to(logits.device()));
  session_->select(first_equal_);
  return logits;
}

at::Tensor GrowingRows::next_logits() {
  if (!has_read_) {
    has_read_ = true;
    return read_first();
  }
  std::vector<TokenIds> unread;
  for (const auto row : c10::irange(size())) {
    const TokenIds& tokens = tokens_[row];
    const auto number = static_cast<std::int64_t>(row);
    if (static_cast<std::int64_t>(tokens.size() - starts_[row]) > limit_) {
      starts_[row] = tokens.size() - static_cast<std::size_t>(std::max<std::int64_t>(1, limit_ / 2));
      session_->rewind(number, 0);
    }
    const auto next = static_cast<std::ptrdiff_t>(starts_[row]) + session_->length(number);
    unread.emplace_back(tokens.begin() + next, tokens.end());
  }
  return session_->read(unread);
}

void GrowingRows::select(const std::vector<std::int64_t>& rows) {
  std::vector<TokenIds> tokens;
  std::vector<std::size_t> starts;
  for (const std::int64_t row : rows) {
    tokens.push_back(tokens_.at(static_cast<std::size_t>(row)));
    starts.push_back(starts_[static_cast<std::size_t>(row)]);
  }
  tokens_ = std::move(tokens);
  starts_ = std::move(starts);
  session_->select(rows);
}

}  // namespace zoo
