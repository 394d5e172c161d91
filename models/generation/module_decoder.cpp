#include "models/generation/module_decoder.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/arange.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/irange.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/generation/graphs/graphed_steps.h"
#include "models/layers/attention/positions.h"

namespace zoo {
namespace {

enum class Side { kLeft, kRight };

std::int64_t longest_of(const std::vector<TokenIds>& rows) {
  std::int64_t longest = 0;
  for (const TokenIds& row : rows) longest = std::max(longest, std::ssize(row));
  return longest;
}

// [B, longest], padded on `side` with 0, which a mask hides.
at::Tensor pad(const std::vector<TokenIds>& rows, Side side) {
  const std::int64_t width = longest_of(rows);
  at::Tensor padded = at::zeros({std::ssize(rows), width}, at::kLong);
  auto* place = padded.mutable_data_ptr<std::int64_t>();
  for (const TokenIds& row : rows) {
    std::copy(row.begin(), row.end(), place + (side == Side::kLeft ? width - std::ssize(row) : 0));
    place += width;
  }
  return padded;
}

// The encoder's sources and output; `rows` gives the source of each row of the session.
struct Source {
  at::Tensor ids, mask;  // [B, S]; no mask where no row is padded
  at::Tensor memory;     // [B, S, C], after the first step
  std::vector<std::int64_t> rows;
};

class ModuleSession : public DecodingSession {
 public:
  ModuleSession(Model& model, const std::vector<Intervention>& interventions, std::int64_t rows,
                std::int64_t capacity)
      : model_(model),
        interventions_(interventions),
        weight_options_(model.parameters().front().options().requires_grad(false)),
        capacity_(capacity),
        begins_(static_cast<std::size_t>(rows), 0),
        lengths_(static_cast<std::size_t>(rows), 0),
        cache_(model.config(), rows, std::min(capacity, DecodingModel::kFirstCapacity), weight_options_),
        graphed_(model, cache_) {}

  ModuleSession(Model& model, const std::vector<Intervention>& interventions,
                const std::vector<TokenIds>& sources, std::int64_t capacity)
      : ModuleSession(model, interventions, std::ssize(sources), capacity) {
    source_.ids = pad(sources, Side::kRight).to(device());
    source_.rows = indices_below<std::int64_t>(sources.size());
    std::vector<TokenIds> ones;
    for (const TokenIds& source : sources) ones.emplace_back(source.size(), 1);
    const bool padded = std::any_of(ones.begin(), ones.end(),
                                    [&](const TokenIds& row) { return row.size() != ones.front().size(); });
    if (padded) source_.mask = pad(ones, Side::kRight).to(device());
  }

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override {
    const c10::InferenceMode inference;
    check(tokens);
    align();
    if (const at::Tensor logits = graphed_step(tokens); logits.defined()) {
      for (std::int64_t& length : lengths_) ++length;
      return wanted == Logits::kAll ? logits.unsqueeze(1) : logits;
    }
    // Left padding puts each row's last token at the last position; with a past, it would be between the past
    // and the new tokens.
    const Side side = cache_.length() == 0 ? Side::kLeft : Side::kRight;
    const std::int64_t width = longest_of(tokens);
    const bool ragged = std::any_of(tokens.begin(), tokens.end(),
                                    [&](const TokenIds& row) { return std::ssize(row) < width; });
    for (const auto b : c10::irange(begins_.size())) {
      if (lengths_[b] > 0) continue;
      begins_[b] = cache_.length() + (side == Side::kLeft ? width - std::ssize(tokens[b]) : 0);
      mask_ = at::Tensor();
    }
    hide_places(cache_.length() + width);
    cache_.reserve(cache_.length() + width);
    const bool last_only = wanted == Logits::kLast && (!ragged || side == Side::kLeft);
    const at::Tensor logits = forward(tokens, side, last_only).to(at::kFloat);
    std::vector<std::int64_t> begins(tokens.size(), 0);  // of each row's tokens among the logits
    const bool moved = ragged && side == Side::kLeft;
    for (const auto b : c10::irange(tokens.size())) {
      lengths_[b] += std::ssize(tokens[b]);
      if (moved) begins[b] = width - std::ssize(tokens[b]);
    }
    if (last_only) return logits.select(1, -1);
    if (wanted == Logits::kAll) return moved ? gathered(logits, begins, width) : logits;
    for (const auto b : c10::irange(tokens.size())) begins[b] += std::ssize(tokens[b]) - 1;
    return gathered(logits, begins, 1).select(1, 0);
  }

  void select(const std::vector<std::int64_t>& rows) override {
    const c10::InferenceMode inference;
    if (rows.empty()) throw Error("a session must keep a row");
    if (rows == indices_below<std::int64_t>(lengths_.size())) return;
    begins_ = selected(begins_, rows);
    lengths_ = selected(lengths_, rows);
    const at::Tensor index = at::tensor(rows, at::kLong).to(device());
    bool new_sources = false;
    if (source_.ids.defined()) {
      std::vector<std::int64_t> sources = selected(source_.rows, rows);
      new_sources = sources != source_.rows;  // beams of one text may only swap rows
      source_.rows = std::move(sources);
    }
    cache_.select(index, new_sources);
    for (at::Tensor* all : {&source_.ids, &source_.mask, &source_.memory})
      if (new_sources && all->defined()) *all = all->index_select(0, index);
    mask_ = at::Tensor();
  }

  void add_row() override {
    if (source_.ids.defined()) return DecodingSession::add_row();
    std::vector<std::int64_t> some = indices_below<std::int64_t>(lengths_.size());
    some.push_back(0);
    select(some);
    begins_.back() = lengths_.back() = 0;
  }

  void rewind(std::int64_t row, std::int64_t length) override {
    std::int64_t& held = lengths_.at(static_cast<std::size_t>(row));
    if (length < 0 || length > held) throw Error("a row of ", held, " tokens cannot be rewound to ", length);
    held = length;
  }

  std::int64_t rows() const override { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length(std::int64_t row) const override { return lengths_.at(static_cast<std::size_t>(row)); }

 private:
  c10::Device device() const { return weight_options_.device(); }

  void check(const std::vector<TokenIds>& tokens) const {
    if (tokens.size() != lengths_.size())
      throw Error("a session of ", lengths_.size(), " rows was given tokens of ", tokens.size());
    for (const auto b : c10::irange(tokens.size())) {
      if (tokens[b].empty()) throw Error("a session has nothing to read for row ", b);
      const std::int64_t length = lengths_[b] + std::ssize(tokens[b]);
      if (length > capacity_)
        throw Error("a session has room for ", capacity_, " tokens a row, and row ", b, " would hold ",
                    length);
      check_longrope(model_.config().rope_scaling, static_cast<std::size_t>(lengths_[b]),
                     static_cast<std::size_t>(length));
    }
  }

  // Makes all rows end at the end of the cache, with as little padding as possible.
  void align() {
    const std::int64_t width = std::ranges::max(lengths_), end = begins_[0] + lengths_[0];
    if (width == 0) return cache_.truncate(0);
    bool same_end = true;
    for (const auto b : c10::irange(begins_.size())) same_end = same_end && begins_[b] + lengths_[b] == end;
    if (same_end && std::ranges::min(begins_) == 0) return cache_.truncate(end);
    at::Tensor from = at::zeros({rows(), width}, at::kLong);
    auto* place = from.mutable_data_ptr<std::int64_t>();
    for (const auto b : c10::irange(begins_.size())) {
      std::iota(place + width - lengths_[b], place + width, begins_[b]);
      begins_[b] = width - lengths_[b];
      place += width;
    }
    cache_.rearrange(from.to(device()));
    mask_ = at::Tensor();
  }

  // Masks the padding before the rows, if any, up to `end` and some positions beyond.
  void hide_places(std::int64_t end) {
    constexpr std::int64_t kToCome = 64;
    if (mask_.defined() && mask_.size(1) >= end) return;
    if (std::ranges::max(begins_) == 0) return;
    mask_ = places(0, end + kToCome).ge(column(begins_));
  }

  // A number for each row, [B, 1].
  at::Tensor column(const std::vector<std::int64_t>& numbers) const {
    return at::tensor(numbers, at::kLong).unsqueeze(1).to(device());
  }

  at::Tensor places(std::int64_t begin, std::int64_t end) const {
    return at::arange(begin, end, at::TensorOptions().dtype(at::kLong).device(device()));
  }

  // `count` positions of each row of [B, T, N], from firsts[b] on; those past the end are the last one.
  at::Tensor gathered(const at::Tensor& all, const std::vector<std::int64_t>& firsts,
                      std::int64_t count) const {
    const at::Tensor index = (column(firsts) + places(0, count)).clamp_max_(all.size(1) - 1);
    return all.gather(1, index.unsqueeze(-1).expand({-1, -1, all.size(2)}));
  }

  // [B, T, V], or [B, 1, V] for the last position.
  at::Tensor forward(const std::vector<TokenIds>& tokens, Side side, bool last_only) {
    const at::Tensor ids = pad(tokens, side);
    const std::int64_t past = cache_.length(), end = past + ids.size(1);
    ModelInputs inputs{.cache = &cache_, .last_logits_only = last_only, .interventions = interventions_};
    const at::Tensor mask = mask_.defined() ? mask_.slice(1, 0, end) : at::Tensor();
    const TransformerConfig& config = model_.config();
    if (config.takes_positions() && (mask.defined() || config.rope_scaling.depends_on_length())) {
      // Positions of padding have no meaning, but must be valid, and no row must look longer by them.
      std::vector<std::int64_t> last;
      for (const auto b : c10::irange(tokens.size())) last.push_back(lengths_[b] + std::ssize(tokens[b]) - 1);
      inputs.position_ids =
          at::minimum(places(past, end).unsqueeze(0) - column(begins_), column(last)).clamp_min_(0);
    }
    if (source_.ids.defined()) {
      inputs.input_ids = source_.ids;
      inputs.attention_mask = source_.mask;
      inputs.memory = source_.memory;
      inputs.decoder_input_ids = ids.to(device());
      inputs.decoder_attention_mask = mask;
      const ModelOutput output = model_.forward(inputs);
      source_.memory = output.encoder_last_hidden_state;
      return output.logits;
    }
    inputs.input_ids = ids.to(device());
    inputs.attention_mask = mask;
    return model_.forward(inputs).logits;
  }

  // [B, V] of one token after each row's others; undefined where the step has to take the usual way.
  at::Tensor graphed_step(const std::vector<TokenIds>& tokens) {
    if (!graphed_.possible() || !interventions_.empty()) return {};
    if (std::ranges::min(lengths_) == 0) return {};
    TokenIds ids;
    for (const TokenIds& row : tokens) {
      if (row.size() > 1) return {};
      ids.push_back(row.front());
    }
    cache_.reserve(cache_.length() + 1);
    return graphed_.step(ids, begins_);
  }

  Model& model_;
  const std::vector<Intervention>& interventions_;  // of the decoder
  at::TensorOptions weight_options_;                // stored, because a query walks over all modules
  std::int64_t capacity_;
  // Row b is at [begins_[b], begins_[b] + lengths_[b]) of the cache; read() first moves all rows to its end.
  std::vector<std::int64_t> begins_, lengths_;
  KeyValueCache cache_;
  GraphedSteps graphed_;
  at::Tensor mask_;  // [B, length of the cache], 0 before a row begins; undefined where all begin at 0; grows
  Source source_;    // of an encoder-decoder
};

}  // namespace

std::unique_ptr<DecodingSession> ModuleDecoder::begin(std::int64_t rows, std::int64_t capacity) {
  TORCH_CHECK(config().shape == Shape::kDecoder, "an encoder-decoder needs sources to begin with");
  const c10::InferenceMode inference;
  return std::make_unique<ModuleSession>(model_, interventions_, rows, capacity);
}

std::unique_ptr<DecodingSession> ModuleDecoder::begin(const std::vector<TokenIds>& sources,
                                                      std::int64_t capacity) {
  TORCH_CHECK(config().shape == Shape::kEncoderDecoder, "only an encoder-decoder has sources");
  const c10::InferenceMode inference;
  return std::make_unique<ModuleSession>(model_, interventions_, sources, capacity);
}

}  // namespace zoo
