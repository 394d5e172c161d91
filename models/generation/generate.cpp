#include "models/generation/generate.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/irange.h>

#include "data/base/error.h"
#include "models/layers/masks.h"

namespace zoo {
namespace {

using Ids = std::vector<std::int64_t>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What stands where a row has no token; the mask hides it.
constexpr std::int64_t kPadding = 0;

std::int64_t context_limit(const TransformerConfig& config) {
  const bool bounded =
      config.position == PositionKind::kLearned || config.position == PositionKind::kSinusoidal;
  return bounded ? config.max_positions : std::numeric_limits<std::int64_t>::max();
}

void check_prompts(const std::vector<Ids>& prompts, const TransformerConfig& config) {
  const std::int64_t limit = context_limit(config);
  for (const Ids& prompt : prompts) {
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

// Evaluation mode, and back at the end of the scope.
class EvaluationScope {
 public:
  explicit EvaluationScope(Model& model) : model_(model), was_training_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationScope() { model_.train(was_training_); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  Model& model_;
  bool was_training_;
};

// [B, longest] with each row's ids at its end or its beginning, and where they are: 1, and 0 for padding.
struct Padded {
  at::Tensor ids, mask;
  bool has_padding = false;
};

enum class Side { kLeft, kRight };

Padded pad(const std::vector<const Ids*>& rows, Side side) {
  std::size_t longest = 0;
  for (const Ids* row : rows) longest = std::max(longest, row->size());
  const auto batch = static_cast<std::int64_t>(rows.size()), width = static_cast<std::int64_t>(longest);
  Padded padded{at::full({batch, width}, kPadding, at::kLong), at::zeros({batch, width}, at::kLong)};
  for (const auto b : c10::irange(batch)) {
    const Ids& row = *rows[static_cast<std::size_t>(b)];
    const auto length = static_cast<std::int64_t>(row.size());
    const std::int64_t begin = side == Side::kLeft ? width - length : 0;
    std::copy(row.begin(), row.end(), padded.ids.mutable_data_ptr<std::int64_t>() + b * width + begin);
    padded.mask[b].slice(0, begin, begin + length).fill_(1);
    padded.has_padding = padded.has_padding || length < width;
  }
  return padded;
}

// What an encoder-decoder reads once.
struct Source {
  at::Tensor ids, mask;  // [B, S]; no mask where no row is padded
  at::Tensor memory;     // [B, S, C], after the first step
};

// What the decoder begins with: the prompts, or the start token of an encoder-decoder.
std::vector<Ids> first_contexts(const Model& model, const std::vector<Ids>& prompts,
                                const GenerationOptions& options) {
  const TransformerConfig& config = model.config();
  if (config.shape != Shape::kEncoderDecoder) return prompts;
  const bool given = options.decoder_start_token_id >= 0;
  const std::int64_t start = given ? options.decoder_start_token_id : config.decoder_start_token_id;
  if (start < 0 || start >= config.vocab_size) {
    throw Error("an encoder-decoder begins with decoder_start_token_id, which must be in [0, ",
                config.vocab_size, "), got ", start < 0 ? "none" : std::to_string(start));
  }
  return std::vector<Ids>(prompts.size(), Ids{start});
}

// The rows being continued, what the model shall see of each, and the cache of what it has read.
class Contexts {
 public:
  Contexts(Model& model, const std::vector<Ids>& prompts, const GenerationOptions& options)
      : model_(model),
        contexts_(first_contexts(model, prompts, options)),
        ended_(prompts.size(), false),
        weight_options_(model.parameters().front().options().requires_grad(false)),
        limit_(context_limit(model.config())) {
    for (const auto row : c10::irange(prompts.size())) rows_.push_back(row);
    const std::int64_t longest = longest_context();
    // The last token is given, but never read.
    capacity_ = longest + std::min(options.max_new_tokens - 1, limit_ - longest);
    if (model.config().shape == Shape::kEncoderDecoder) read_source(prompts);
  }

  // Numbers of the rows that next_logits() tells of: all but those that had ended when the context last slid.
  const std::vector<std::size_t>& rows() const { return rows_; }

  // Logits [B, V] of the next token of each row.
  at::Tensor next_logits() {
    const bool readable = cache_ && cache_->length() < capacity_;
    return readable ? read_last_tokens() : read_contexts();
  }

  void append(std::size_t row, std::int64_t id) { contexts_[row].push_back(id); }
  void end(std::size_t row) { ended_[row] = true; }
  bool ended(std::size_t row) const { return ended_[row]; }
  bool all_ended() const { return std::find(ended_.begin(), ended_.end(), false) == ended_.end(); }

 private:
  std::int64_t longest_context() const {
    std::size_t longest = 0;
    for (const std::size_t row : rows_) longest = std::max(longest, contexts_[row].size());
    return static_cast<std::int64_t>(longest);
  }

  void read_source(const std::vector<Ids>& prompts) {
    std::vector<const Ids*> rows;
    for (const Ids& prompt : prompts) rows.push_back(&prompt);
    const Padded padded = pad(rows, Side::kRight);
    source_.emplace();
    source_->ids = padded.ids.to(device());
    if (padded.has_padding) source_->mask = padded.mask.to(device());
  }

  // Leaves out the rows that have ended and makes room in those that fill the model's context.
  void make_room() {
    rows_.erase(std::remove_if(rows_.begin(), rows_.end(), [&](std::size_t row) { return ended_[row]; }),
                rows_.end());
    for (const std::size_t row : rows_) {
      Ids& context = contexts_[row];
      const auto length = static_cast<std::int64_t>(context.size());
      if (length > limit_)
        context.erase(context.begin(), context.end() - std::max<std::int64_t>(1, limit_ / 2));
    }
  }

  void empty_cache() {
    const auto batch = static_cast<std::int64_t>(rows_.size());
    if (cache_ && batch == batch_) return cache_->truncate(0);
    cache_.reset();  // so that there are never two
    cache_ = std::make_unique<KeyValueCache>(model_.config(), batch, capacity_, weight_options_);
    batch_ = batch;
  }

  at::Tensor read_contexts() {
    make_room();
    empty_cache();
    std::vector<const Ids*> rows;
    for (const std::size_t row : rows_) rows.push_back(&contexts_[row]);
    const Padded padded = pad(rows, Side::kLeft);
    if (!padded.has_padding) {
      mask_ = at::Tensor();
      return forward(padded.ids, at::Tensor());
    }
    const at::Tensor to_come = at::ones({batch_, capacity_ - padded.ids.size(1)}, at::kLong);
    mask_ = at::cat({padded.mask, to_come}, 1).to(device());
    return forward(padded.ids, positions_of(padded.mask));
  }

  at::Tensor read_last_tokens() {
    at::Tensor ids = at::empty({batch_, 1}, at::kLong), positions = at::empty({batch_, 1}, at::kLong);
    for (const auto b : c10::irange(batch_)) {
      const Ids& context = contexts_[rows_[static_cast<std::size_t>(b)]];
      ids.mutable_data_ptr<std::int64_t>()[b] = context.back();
      positions.mutable_data_ptr<std::int64_t>()[b] = static_cast<std::int64_t>(context.size()) - 1;
    }
    return forward(ids, mask_.defined() ? positions : at::Tensor());
  }

  at::Tensor forward(const at::Tensor& ids, const at::Tensor& positions) {
    ModelInputs inputs{.cache = cache_.get(), .last_logits_only = true};
    if (source_) {
      // Its decoder's rows are as long as one another and fill no context: they are read once, together.
      inputs.input_ids = source_->ids;
      inputs.attention_mask = source_->mask;
      inputs.memory = source_->memory;
      inputs.decoder_input_ids = ids.to(device());
      const ModelOutput output = model_.forward(inputs);
      source_->memory = output.encoder_last_hidden_state;
      return output.logits.select(1, -1);
    }
    inputs.input_ids = ids.to(device());
    if (mask_.defined()) {
      inputs.attention_mask = mask_.slice(1, 0, cache_->length() + ids.size(1));
      inputs.position_ids = positions.to(device());
    }
    return model_.forward(inputs).logits.select(1, -1);
  }

  c10::Device device() const { return weight_options_.device(); }

  Model& model_;
  std::vector<Ids> contexts_;  // for each row of the prompts, as are ended_
  std::vector<bool> ended_;
  at::TensorOptions weight_options_;  // asked for once: it takes a walk over all modules
  std::vector<std::size_t> rows_;
  std::int64_t limit_, capacity_ = 0, batch_ = 0;
  std::unique_ptr<KeyValueCache> cache_;
  at::Tensor mask_;               // [B, capacity]; undefined where no row is padded
  std::optional<Source> source_;  // of an encoder-decoder
};

}  // namespace

std::int64_t GenerationResult::token_count() const {
  std::size_t count = 0;
  for (const Ids& row : ids) count += row.size();
  return static_cast<std::int64_t>(count);
}

double GenerationResult::tokens_per_second() const {
  const double seconds = seconds_prefill + seconds_decode;
  return seconds > 0 ? static_cast<double>(token_count()) / seconds : 0;
}

GenerationResult generate(Model& model, const std::vector<Ids>& prompts, const GenerationOptions& options,
                          const TokenCallback& on_token) {
  if (options.max_new_tokens < 1)
    throw Error("max_new_tokens must be at least 1, got ", options.max_new_tokens);
  check_prompts(prompts, model.config());
  GenerationResult result{.ids = std::vector<Ids>(prompts.size())};
  TokenSampler sampler(options.sampling, prompts.size());
  if (prompts.empty()) return result;

  const c10::InferenceMode inference;
  const EvaluationScope evaluation(model);
  auto start = std::chrono::steady_clock::now();
  Contexts contexts(model, prompts, options);
  const auto ends = [&](std::int64_t id) {
    return std::find(options.eos_token_ids.begin(), options.eos_token_ids.end(), id) !=
           options.eos_token_ids.end();
  };
  bool going = true;
  for (std::int64_t step = 0; step < options.max_new_tokens && going && !contexts.all_ended(); ++step) {
    const at::Tensor logits = contexts.next_logits();
    const Ids chosen = sampler.sample(logits, contexts.rows());
    for (std::size_t b = 0; b < chosen.size(); ++b) {
      const std::size_t row = contexts.rows()[b];
      // A row that has ended is carried along until the batch is made anew.
      contexts.append(row, contexts.ended(row) ? kPadding : chosen[b]);
      if (contexts.ended(row)) continue;
      result.ids[row].push_back(chosen[b]);
      if (ends(chosen[b])) contexts.end(row);
      if (on_token && !on_token(row, chosen[b])) going = false;
    }
    (step == 0 ? result.seconds_prefill : result.seconds_decode) = seconds_since(start);
    if (step == 0) start = std::chrono::steady_clock::now();
  }
  return result;
}

}  // namespace zoo
