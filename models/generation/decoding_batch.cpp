#include "models/generation/decoding_batch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>

#include <ATen/ops/tensor.h>
#include <c10/util/irange.h>

#include "data/base/error.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

// A pass costs about as much as this many more rows in another pass.
constexpr std::size_t kWorthwhile = 16;

// Adds the groups of rows, whose numbers are in the order of their tokens; returns the number of tokens
// saved.
std::size_t divide(const std::vector<TokenIds>& rows, std::span<const std::size_t> order,
                   std::vector<SharedPrefix>& groups) {
  if (order.size() == 1) {
    groups.push_back({{order.front()}, 0});
    return 0;
  }
  // The common prefix of the first and the last row is common to all; only the first may end there.
  const TokenIds &least = rows[order.front()], &greatest = rows[order.back()];
  const auto parting = std::ranges::mismatch(least, greatest).in1;
  const auto alike = static_cast<std::size_t>(parting - least.begin());
  const std::size_t shared = std::min(alike, least.size() - 1);
  const std::size_t together = (order.size() - 1) * shared;

  std::vector<SharedPrefix> parts;
  std::size_t apart = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const TokenIds& first = rows[order[begin]];
    const auto parts_here = [&](std::size_t i) {
      return first.size() == alike || rows[order[i]][alike] != first[alike];
    };
    for (end = begin + 1; end < order.size() && !parts_here(end);) ++end;
    apart += divide(rows, order.subspan(begin, end - begin), parts);
  }
  if (together >= kWorthwhile && together >= apart) {
    groups.push_back({{order.begin(), order.end()}, shared});
    return together;
  }
  groups.insert(groups.end(), parts.begin(), parts.end());
  return apart;
}

void check_prompts(const std::vector<TokenIds>& prompts, const TransformerConfig& config,
                   std::int64_t context) {
  // An encoder cannot slide over its source. Without a position table it accepts any, but its time grows with
  // the length squared.
  constexpr std::int64_t kLongestSource = 8192;
  const std::int64_t limit = config.shape == Shape::kEncoderDecoder
                                 ? std::min(context_limit(config), kLongestSource)
                                 : context_limit(config, context);
  for (const TokenIds& prompt : prompts) {
    if (prompt.empty()) throw Error("a prompt is empty: there is nothing to continue");
    if (std::ssize(prompt) > limit)
      throw Error("a prompt of ", prompt.size(), " tokens is longer than the context of ", limit, " tokens");
    for (const TokenId id : prompt) require_model_id("", id, config.vocab_size);
  }
}

// Maximum number of tokens that a sequence keeps its rotary angles for: the original context of longrope.
std::int64_t longrope_limit(const TransformerConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  return scaling.kind == RopeScalingKind::kLongRope ? scaling.original_max_positions
                                                    : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::vector<SharedPrefix> shared_prefixes(const std::vector<TokenIds>& rows) {
  std::vector<std::size_t> order = indices_below(rows.size());
  std::ranges::sort(order, {}, [&](std::size_t row) -> const TokenIds& { return rows[row]; });
  std::vector<SharedPrefix> groups;
  if (!rows.empty()) divide(rows, order, groups);
  return groups;
}

std::int64_t context_limit(const TransformerConfig& config, std::int64_t context) {
  if (context < 0) throw Error("context must not be negative, got ", context);
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  return std::min(config.has_position_table() ? config.max_positions : kUnlimited,
                  context == 0 ? kUnlimited : context);
}

std::vector<TokenIds> first_tokens(const TransformerConfig& config, const std::vector<TokenIds>& prompts,
                                   std::int64_t decoder_start_token_id, std::int64_t context) {
  check_prompts(prompts, config, context);
  if (config.shape != Shape::kEncoderDecoder || prompts.empty()) return prompts;
  const std::int64_t start =
      decoder_start_token_id >= 0 ? decoder_start_token_id : config.decoder_start_token_id;
  if (start < 0 || start >= config.vocab_size)
    throw Error("an encoder-decoder begins with decoder_start_token_id, which must be in [0, ",
                config.vocab_size, "), got ", start < 0 ? "none" : std::to_string(start));
  return std::vector<TokenIds>(prompts.size(), {static_cast<TokenId>(start)});
}

DecodingBatch::DecodingBatch(DecodingModel& model, const std::vector<TokenIds>& prompts,
                             const GenerationOptions& options)
    : tokens_(first_tokens(model.config(), prompts, options.decoder_start_token_id, options.context)),
      starts_(prompts.size(), 0),
      limit_(context_limit(model.config(), options.context)),
      longrope_limit_(longrope_limit(model.config())) {
  if (prompts.empty()) return;
  const bool has_encoder = model.config().shape == Shape::kEncoderDecoder;
  std::size_t longest = 0;
  for (const TokenIds& row : tokens_) {
    given_.push_back(row.size());
    longest = std::max(longest, row.size());
  }
  const auto begin = static_cast<std::int64_t>(longest);
  const std::int64_t read = options.max_new_tokens - 1;  // not the last new token
  const std::int64_t capacity = begin + std::min(read, limit_ - begin);

  std::vector<TokenIds> different;
  std::map<TokenIds, std::int64_t> places;
  for (const TokenIds& prompt : prompts) {
    const auto [place, is_new] = places.emplace(prompt, std::ssize(different));
    if (is_new) different.push_back(prompt);
    first_equal_.push_back(place->second);
  }
  if (has_encoder) {
    session_ = model.begin(different, capacity);
  } else {
    beginnings_ = shared_prefixes(different);
    const bool by_length = model.config().rope_scaling.depends_on_length();
    if (by_length || beginnings_.size() == different.size()) beginnings_.clear();
    session_ = model.begin(beginnings_.empty() ? std::ssize(different) : std::ssize(beginnings_), capacity);
    keeps_ = options.keep_cache && options.beams.num_beams == 1 && !by_length;
    if (keeps_) session_->keep();
  }
}

at::Tensor DecodingBatch::read_first() {
  const std::int64_t count = *std::max_element(first_equal_.begin(), first_equal_.end()) + 1;
  std::vector<TokenIds> different(static_cast<std::size_t>(count)), rest;
  for (const auto row : c10::irange(size()))
    different[static_cast<std::size_t>(first_equal_[row])] = tokens_[row];
  if (!beginnings_.empty()) read_beginnings(different);
  for (const auto row : c10::irange(different.size())) {
    const TokenIds& tokens = different[row];
    const auto number = static_cast<std::int64_t>(row);
    if (keeps_ && beginnings_.empty()) session_->reuse(number, tokens);
    rest.emplace_back(tokens.begin() + session_->length(number), tokens.end());
  }
  at::Tensor logits = session_->read(rest);
  if (different.size() == size()) return logits;
  // Copied before the next call to the session.
  logits = logits.index_select(0, at::tensor(first_equal_, at::kLong).to(logits.device()));
  session_->select(first_equal_);
  return logits;
}

// Reads shared prefixes. A row that shares none reads all but its last token.
void DecodingBatch::read_beginnings(const std::vector<TokenIds>& different) {
  std::vector<TokenIds> beginnings;
  std::vector<std::int64_t> groups(different.size());  // group of each row
  for (const auto group : c10::irange(beginnings_.size())) {
    const auto& [rows, shared] = beginnings_[group];
    const TokenIds& first = different[rows.front()];
    const std::size_t length = shared > 0 ? shared : std::max<std::size_t>(1, first.size() - 1);
    beginnings.emplace_back(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(length));
    for (const std::size_t row : rows) groups[row] = static_cast<std::int64_t>(group);
  }
  session_->read(beginnings);
  session_->select(groups);
  // A row's only token is read twice, for the logits after it.
  for (const auto row : c10::irange(different.size()))
    if (different[row].size() == 1) session_->rewind(static_cast<std::int64_t>(row), 0);
}

at::Tensor DecodingBatch::next_logits() {
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
    // From this length on, longrope uses other angles, so the cache is useless.
    const auto seen_tokens = static_cast<std::int64_t>(tokens.size() - starts_[row]);
    if (seen_tokens > longrope_limit_ && session_->length(number) <= longrope_limit_)
      session_->rewind(number, 0);
    const auto next = static_cast<std::ptrdiff_t>(starts_[row]) + session_->length(number);
    unread.emplace_back(tokens.begin() + next, tokens.end());
  }
  return session_->read(unread);
}

RowHistories DecodingBatch::histories() const {
  RowHistories histories;
  for (const auto row : c10::irange(size())) histories.push_back({&tokens_[row], given_[row]});
  return histories;
}

void DecodingBatch::select(const std::vector<std::int64_t>& rows) {
  tokens_ = selected(tokens_, rows);
  given_ = selected(given_, rows);
  starts_ = selected(starts_, rows);
  session_->select(rows);
}

}  // namespace zoo
