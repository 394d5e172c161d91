#include "models/inference/packed_decoder.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>

#include "data/base/error.h"
#include "models/decoder/decoder.h"
#include "models/layers/positions.h"
#include "models/t5/t5.h"

namespace zoo {
namespace inference {
namespace {

// Rows of a pass: a long prompt is read in parts, so that its buffers stay small.
constexpr std::size_t kRowsAtOnce = 512;

// Adds a table's row to x, or writes it.
template <bool kAdds>
void read_row(const at::Tensor& table, std::int64_t row, float* x) {
  const std::int64_t width = table.size(1);
  const auto take = [&](const auto* from) {
    from += row * table.stride(0);
    for (std::int64_t i = 0; i < width; ++i) {
      const auto value = static_cast<float>(from[i]);
      x[i] = kAdds ? x[i] + value : value;
    }
  };
  switch (table.scalar_type()) {
    case at::kFloat:
      return take(table.const_data_ptr<float>());
    case at::kBFloat16:
      return take(table.const_data_ptr<at::BFloat16>());
    case at::kHalf:
      return take(table.const_data_ptr<at::Half>());
    default:
      TORCH_CHECK(false, "an embedding of ", table.scalar_type(), " cannot be read");
  }
}

at::Tensor rows_of(const at::Tensor& table) {
  return table.stride(1) == 1 ? table.detach() : table.detach().contiguous();
}

}  // namespace

PackedDecoder::PackedDecoder(Model& model, const PackOptions& options) : config_(model.config()) {
  const at::Tensor* output = nullptr;
  if (auto* decoder = dynamic_cast<DecoderForCausalLm*>(&model)) {
    token_embedding_ = rows_of(decoder->token_embedding->weight);
    if (decoder->position_embedding) position_embedding_ = rows_of(decoder->position_embedding->weight);
    if (config_.position == PositionKind::kSinusoidal)
      position_embedding_ = sinusoidal_positions(config_.max_positions, config_.hidden_size);
    stack_ = std::make_unique<PackedStack>(*decoder->stack, config_, options);
    output = decoder->lm_head ? &decoder->lm_head->weight : &decoder->token_embedding->weight;
  } else {
    auto* t5 = dynamic_cast<t5::T5*>(&model);
    TORCH_CHECK(t5 != nullptr && t5->head() == Head::kSeq2SeqLm, "only a language model can be packed");
    token_embedding_ = rows_of(t5->token_embedding->weight);
    encoder_ = std::make_unique<PackedStack>(*t5->stack->encoder, config_.encoder_part(), options);
    stack_ = std::make_unique<PackedStack>(*t5->stack->decoder, config_.decoder_part(), options);
    output = t5->lm_head ? &t5->lm_head->weight : &t5->token_embedding->weight;
  }
  head_ = PackedLinear(*output, at::Tensor(), options.weights);
}

std::size_t PackedDecoder::bytes() const {
  return head_.bytes() + stack_->bytes() + (encoder_ ? encoder_->bytes() : 0);
}

std::size_t PackedDecoder::cache_bytes_per_token() const {
  const CacheShape shape = stack_->cache_shape(1, 1);
  const std::size_t panel = kernels::key_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs) +
                            kernels::value_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs);
  return shape.layers * shape.heads * panel / kernels::kPanelOutputs;
}

void PackedDecoder::embed(std::int64_t id, std::size_t position, float* x) const {
  TORCH_CHECK(id >= 0 && id < token_embedding_.size(0), "the id ", id, " is outside the vocabulary of ",
              token_embedding_.size(0), " ids");
  read_row<false>(token_embedding_, id, x);
  if (!position_embedding_.defined()) return;
  TORCH_CHECK(static_cast<std::int64_t>(position) < position_embedding_.size(0), "position ", position,
              " is behind the model's ", position_embedding_.size(0), " positions");
  read_row<true>(position_embedding_, static_cast<std::int64_t>(position), x);
}

void PackedDecoder::logits(const float* hidden, std::size_t rows, float* result) const {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const WeightType type = kernels::prepared_type(head_.weight().type, rows);
  const std::size_t row_bytes = kernels::prepared_row_bytes(type, width);
  const std::size_t groups = kernels::scales_in_row(type, width);
  prepared_.grow_to(rows * row_bytes);
  scales_.grow_to(rows * groups * sizeof(float));
  sums_.grow_to(rows * groups * sizeof(std::int32_t));
  const kernels::PreparedRows prepared{type, prepared_.data(), row_bytes, scales_.as<float>(),
                                       sums_.as<std::int32_t>()};
  const kernels::PackedProduct product{.weight = &head_.weight(),
                                       .rows = prepared,
                                       .row_count = rows,
                                       .result = result,
                                       .result_row = head_.weight().outputs};
  run_team([&](const Team& team) {
    const kernels::InferenceKernels& kernels = kernels::inference_kernels();
    const Team::Part own = team.part_of(rows);
    kernels.prepare({.input = hidden, .input_row = width, .width = width}, prepared, own.first, own.last);
    team.wait();
    const Team::Part part = team.part_of(product.weight->outputs, kernels::kPanelOutputs);
    kernels.multiply(product, part.first, part.last);
  });
}

/// Each row has a slot of the cache; rows that part from one another (beams) get a copy of what they share.
class PackedSession : public DecodingSession {
 public:
  PackedSession(PackedDecoder& model, std::size_t rows, std::size_t capacity)
      : model_(model), capacity_(capacity), rows_(rows), cache_(model.stack_->cache_shape(rows, capacity)) {
    for (std::size_t i = 0; i < rows; ++i) rows_[i] = {.slot = i, .source = i};
  }

  void read_sources(const std::vector<TokenIds>& sources);

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override;
  void keep_hidden() override { keeps_hidden_ = true; }
  at::Tensor hidden() const override { return states_; }
  void select(const std::vector<std::int64_t>& rows) override;
  void rewind(std::int64_t row, std::int64_t length) override {
    auto& own = rows_.at(static_cast<std::size_t>(row));
    own.length = std::min(own.length, static_cast<std::size_t>(length));
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t length(std::int64_t row) const override {
    return static_cast<std::int64_t>(rows_.at(static_cast<std::size_t>(row)).length);
  }

 private:
  struct Row {
    std::size_t slot = 0, source = 0, length = 0;
  };
  // Tokens of one row that a pass reads.
  struct Piece {
    std::size_t row, first, count;
  };

  std::vector<std::vector<Piece>> passes(const std::vector<TokenIds>& tokens) const;
  void add_slots(std::size_t count);

  PackedDecoder& model_;
  std::size_t capacity_;
  std::vector<Row> rows_;
  PackedCache cache_, memory_;
  std::vector<std::size_t> memory_lengths_;
  Memory x_, hidden_;
  at::Tensor logits_;  // given again where the shape is the same
  bool keeps_hidden_ = false;
  at::Tensor states_;  // [B, T, C] of the last read()
};

void PackedSession::read_sources(const std::vector<TokenIds>& sources) {
  const auto width = static_cast<std::size_t>(model_.config_.hidden_size);
  std::size_t longest = 0, total = 0;
  for (const TokenIds& source : sources) {
    longest = std::max(longest, source.size());
    total += source.size();
  }
  Memory hidden(total * width * sizeof(float));
  Pass pass{.x = hidden.as<float>(), .rows = total};
  std::size_t row = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    pass.sequences.push_back({.first_row = row, .count = sources[i].size(), .slot = i, .source = i});
    memory_lengths_.push_back(sources[i].size());
    for (const std::int64_t id : sources[i]) model_.embed(id, 0, pass.x + row++ * width);
  }
  model_.encoder_->run(pass, model_.workspace_);
  memory_ = PackedCache(model_.stack_->cache_shape(sources.size(), longest));
  model_.stack_->remember_memory(pass.x, pass.sequences, memory_, model_.workspace_);
}

// The tokens in the order of their rows, as many at once as a pass may have.
std::vector<std::vector<PackedSession::Piece>> PackedSession::passes(
    const std::vector<TokenIds>& tokens) const {
  std::vector<std::vector<Piece>> passes(1);
  std::size_t room = kRowsAtOnce;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (std::size_t first = 0; first < tokens[row].size();) {
      if (room == 0) {
        passes.emplace_back();
        room = kRowsAtOnce;
      }
      const std::size_t count = std::min(room, tokens[row].size() - first);
      passes.back().push_back({row, first, count});
      first += count;
      room -= count;
    }
  }
  return passes;
}

at::Tensor PackedSession::read(const std::vector<TokenIds>& tokens, Logits wanted) {
  TORCH_CHECK(tokens.size() == rows_.size(), "tokens for ", rows_.size(), " rows were expected, got ",
              tokens.size());
  std::size_t longest = 0;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    TORCH_CHECK(!tokens[row].empty(), "row ", row, " was given no token");
    longest = std::max(longest, tokens[row].size());
    if (rows_[row].length + tokens[row].size() > capacity_)
      throw Error("row ", row, " would grow beyond its room for ", capacity_, " tokens");
  }
  const auto width = static_cast<std::size_t>(model_.config_.hidden_size);
  const std::size_t places = wanted == Logits::kAll ? longest : 1;
  hidden_.grow_to(rows_.size() * places * width * sizeof(float));
  if (keeps_hidden_)
    states_ = at::empty({rows(), static_cast<std::int64_t>(longest), model_.config_.hidden_size}, at::kFloat);
  for (const std::vector<Piece>& pieces : passes(tokens)) {
    Pass pass{.cache = &cache_, .memory = &memory_, .memory_lengths = &memory_lengths_};
    if (!model_.encoder_) pass.memory_lengths = nullptr;
    for (const Piece& piece : pieces) {
      const Row& row = rows_[piece.row];
      pass.sequences.push_back({pass.rows, piece.count, row.length, row.slot, row.source});
      pass.rows += piece.count;
    }
    x_.grow_to(pass.rows * width * sizeof(float));
    pass.x = x_.as<float>();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const SequenceRows& rows = pass.sequences[i];
      for (std::size_t t = 0; t < rows.count; ++t)
        model_.embed(tokens[pieces[i].row][pieces[i].first + t], rows.past + t,
                     pass.x + (rows.first_row + t) * width);
    }
    model_.stack_->run(pass, model_.workspace_);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      rows_[piece.row].length += piece.count;
      if (keeps_hidden_)
        std::memcpy(states_.mutable_data_ptr<float>() + (piece.row * longest + piece.first) * width,
                    pass.x + pass.sequences[i].first_row * width, piece.count * width * sizeof(float));
      for (std::size_t t = 0; t < piece.count; ++t) {
        const bool last = piece.first + t + 1 == tokens[piece.row].size();
        if (wanted == Logits::kLast && !last) continue;
        const std::size_t place = piece.row * places + (wanted == Logits::kAll ? piece.first + t : 0);
        std::memcpy(hidden_.as<float>() + place * width, pass.x + (pass.sequences[i].first_row + t) * width,
                    width * sizeof(float));
      }
    }
  }
  const auto vocabulary = static_cast<std::int64_t>(model_.head_.weight().outputs);
  const auto batch = static_cast<std::int64_t>(rows_.size()), length = static_cast<std::int64_t>(places);
  if (!logits_.defined() || logits_.size(0) != batch || logits_.size(1) != length)
    logits_ = at::empty({batch, length, vocabulary}, at::kFloat);
  const std::size_t count = rows_.size() * places;
  if (model_.config_.logits_scale != 1.0) {
    const auto scale = static_cast<float>(model_.config_.logits_scale);
    for (std::size_t i = 0; i < count * width; ++i) hidden_.as<float>()[i] *= scale;
  }
  model_.logits(hidden_.as<float>(), count, logits_.mutable_data_ptr<float>());
  return wanted == Logits::kAll ? logits_ : logits_.squeeze(1);
}

void PackedSession::select(const std::vector<std::int64_t>& rows) {
  TORCH_CHECK(!rows.empty(), "a session needs at least one row");
  std::vector<Row> chosen;
  std::vector<bool> taken(cache_.shape().slots, false);
  for (const std::int64_t row : rows) chosen.push_back(rows_.at(static_cast<std::size_t>(row)));
  for (const Row& row : chosen) taken[row.slot] = true;
  std::vector<bool> owned(taken.size(), false);
  for (Row& row : chosen) {
    if (!owned[row.slot]) {
      owned[row.slot] = true;
      continue;
    }
    auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) {
      const std::size_t slots = taken.size();
      add_slots(rows.size());
      taken.resize(cache_.shape().slots, false);
      owned.resize(taken.size(), false);
      free = taken.begin() + static_cast<std::ptrdiff_t>(slots);
    }
    const auto slot = static_cast<std::size_t>(free - taken.begin());
    cache_.copy(row.slot, slot, row.length);
    row.slot = slot;
    taken[slot] = owned[slot] = true;
  }
  rows_ = std::move(chosen);
}

// A larger cache, with what the slots hold.
void PackedSession::add_slots(std::size_t count) {
  PackedCache larger(model_.stack_->cache_shape(cache_.shape().slots + count, capacity_));
  larger.take(cache_);
  cache_ = std::move(larger);
}

std::unique_ptr<DecodingSession> PackedDecoder::begin(std::int64_t rows, std::int64_t capacity) {
  TORCH_CHECK(!encoder_, "an encoder-decoder begins with what its encoder reads");
  return std::make_unique<PackedSession>(*this, static_cast<std::size_t>(rows),
                                         static_cast<std::size_t>(capacity));
}

std::unique_ptr<DecodingSession> PackedDecoder::begin(const std::vector<TokenIds>& sources,
                                                      std::int64_t capacity) {
  TORCH_CHECK(encoder_, "a decoder has no encoder to read sources");
  auto session = std::make_unique<PackedSession>(*this, sources.size(), static_cast<std::size_t>(capacity));
  session->read_sources(sources);
  return session;
}

}  // namespace inference

bool can_pack(const Model& model) {
  if (const auto* decoder = dynamic_cast<const DecoderForCausalLm*>(&model))
    return inference::PackedStack::supports(*decoder->stack, model.config());
  const auto* t5 = dynamic_cast<const t5::T5*>(&model);
  return t5 != nullptr && t5->head() == Head::kSeq2SeqLm &&
         inference::PackedStack::supports(*t5->stack->encoder, model.config().encoder_part());
}

std::unique_ptr<inference::PackedDecoder> pack(Model& model, const inference::PackOptions& options) {
  return std::make_unique<inference::PackedDecoder>(model, options);
}

}  // namespace zoo
