#include "models/inference/packed_engine.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "data/base/lines.h"
#include "models/inference/packed_embeddings.h"
#include "models/inference/packed_stack.h"
#include "models/kernels/cpu.h"
#include "models/layers/embeddings.h"

namespace zoo {
namespace inference {
namespace {

// The unmasked positions of a batch [B, T], as the rows of a pass.
struct KeptRows {
  KeptRows(const at::Tensor& mask, std::int64_t batch, std::int64_t length) : batch(batch), length(length) {
    const at::Tensor flags = mask.defined() ? mask.ne(0).contiguous() : at::Tensor();
    TORCH_CHECK(!flags.defined() || flags.sizes() == at::IntArrayRef({batch, length}),
                "attention_mask must be [", batch, ", ", length, "], got ", mask.sizes());
    for (std::int64_t place = 0; place < batch * length; ++place) {
      if (flags.defined() && !flags.const_data_ptr<bool>()[place]) continue;
      const bool begins = places.empty() || place / length != places.back() / length;
      has_gap = has_gap || (!begins && places.back() + 1 != place);
      if (begins) {
        const std::size_t sequence = size(place / length);
        sequences.push_back({.first_row = places.size(), .count = 0, .slot = sequence, .source = sequence});
      }
      ++sequences.back().count;
      places.push_back(place);
    }
  }

  // Copies the unmasked rows of float32 states [B, T, C].
  void gather(const at::Tensor& states, Memory& rows) const {
    const std::size_t bytes = size(states.size(2)) * sizeof(float);
    const auto* from = reinterpret_cast<const std::byte*>(states.const_data_ptr<float>());
    rows.grow_to(places.size() * bytes);
    for (std::size_t i = 0; i < places.size(); ++i)
      std::memcpy(rows.data() + i * bytes, from + size(places[i]) * bytes, bytes);
  }

  // [B, T, C] with zeros at masked positions.
  at::Tensor scatter(const Memory& rows, std::int64_t width) const {
    at::Tensor states = at::zeros({batch, length, width}, at::kFloat);
    const std::size_t bytes = size(width) * sizeof(float);
    auto* to = reinterpret_cast<std::byte*>(states.mutable_data_ptr<float>());
    for (std::size_t i = 0; i < places.size(); ++i)
      std::memcpy(to + size(places[i]) * bytes, rows.data() + i * bytes, bytes);
    return states;
  }

  std::int64_t batch, length;
  std::vector<std::int64_t> places;  // indices among all [B T], in ascending order
  std::vector<SequenceRows> sequences;
  bool has_gap = false;  // inside a sequence
};

// Divides rows [rows, width] of a batch into passes of about equal size, so that their buffers do not grow
// with it. With fewer than kLeastRows, products would unpack their weights too often.
std::vector<Pass> passes_of(float* rows, std::size_t width, const std::vector<SequenceRows>& sequences) {
  constexpr std::size_t kLeastRows = 512;
  const std::size_t all = sequences.empty() ? 0 : sequences.back().first_row + sequences.back().count;
  const std::size_t count = std::max<std::size_t>(1, all / kLeastRows), limit = (all + count - 1) / count;
  std::vector<Pass> passes;
  std::size_t first = 0;  // row of the pass
  for (SequenceRows sequence : sequences) {
    if (passes.empty() || passes.back().rows >= limit) {
      first = sequence.first_row;
      passes.push_back({.x = rows + first * width, .rows = 0});
    }
    sequence.first_row -= first;
    passes.back().rows += sequence.count;
    passes.back().sequences.push_back(sequence);
  }
  return passes;
}

class PackedEngine : public StackEngine {
 public:
  PackedEngine(TransformerStackImpl& stack, const PackOptions& options)
      : stack_(stack, options.for_whole_sequences()) {}

  StackOutput forward(const StackInputs& inputs) override {
    check(inputs);
    const at::Tensor& given = inputs.embeddings;
    const KeptRows kept(inputs.attention_mask, given.size(0), given.size(1));
    // A gap changes the distances between tokens: only learned positions, or none, without a window allow it.
    const PositionKind position = stack_.config().position;
    const bool absolute = position == PositionKind::kLearned || position == PositionKind::kNone;
    TORCH_CHECK(!kept.has_gap || (absolute && stack_.config().sliding_window == 0),
                "a mask that hides what stands between tokens changes their distances");
    const std::lock_guard turn(turn_);
    kept.gather(given.to(at::kFloat).contiguous(), rows_);
    PackedCache memory;
    std::vector<std::size_t> lengths;
    if (inputs.memory.defined()) read_memory(inputs, memory, lengths);
    for (Pass& pass : passes_of(rows_.as<float>(), size(given.size(2)), kept.sequences)) {
      if (inputs.memory.defined()) {
        pass.memory = &memory;
        pass.memory_lengths = &lengths;
      }
      stack_.run(pass, workspace_);
    }
    return {.hidden = kept.scatter(rows_, given.size(2)).to(given.scalar_type())};
  }

 private:
  void check(const StackInputs& inputs) const {
    TORCH_CHECK(!kernels::Tracing::is_active(), "packed weights cannot be exported");
    TORCH_CHECK(!at::GradMode::is_enabled(), "packed weights have no gradients");
    TORCH_CHECK(inputs.interventions.empty() && !inputs.output_activations && !inputs.output_hidden_states &&
                    !inputs.output_attentions && !inputs.output_heads && !inputs.output_router_logits,
                "packed weights record no activations and take no interventions");
    TORCH_CHECK(inputs.cache == nullptr, "packed weights of a whole pass have no cache");
    TORCH_CHECK(!inputs.positions.defined() || stack_.config().position != PositionKind::kRotary,
                "packed weights count positions themselves");
  }

  // Keys, values and numbers of positions of an encoder's output.
  void read_memory(const StackInputs& inputs, PackedCache& memory, std::vector<std::size_t>& lengths) {
    const at::Tensor& given = inputs.memory;
    const KeptRows kept(inputs.memory_mask, given.size(0), given.size(1));
    TORCH_CHECK(size(kept.batch) == kept.sequences.size(),
                "a mask hides a whole row of the encoder's output");
    for (const SequenceRows& rows : kept.sequences) lengths.push_back(rows.count);
    Memory rows;
    kept.gather(given.to(at::kFloat).contiguous(), rows);
    memory = PackedCache(stack_.cache_shape(kept.sequences.size(), std::ranges::max(lengths)));
    for (const Pass& pass : passes_of(rows.as<float>(), size(given.size(2)), kept.sequences))
      stack_.append_memory(pass, memory, workspace_);
  }

  PackedStack stack_;
  std::mutex turn_;  // of the pass that uses the stack's tables and the buffers
  Workspace workspace_;
  Memory rows_;
};

std::vector<std::shared_ptr<TransformerStackImpl>> stacks_of(const Model& model) {
  const ModelParts parts = model.parts();
  std::vector<std::shared_ptr<TransformerStackImpl>> stacks;
  for (const auto& stack : {parts.encoder, parts.decoder})
    if (parts.embeddings && stack) stacks.push_back(stack);
  return stacks;
}

}  // namespace
}  // namespace inference

std::string lacking_kernels(const Model& model) {
  const auto stacks = inference::stacks_of(model);
  if (stacks.empty()) return "there are no packed kernels for models of this family";
  for (const auto& stack : stacks) {
    const std::vector<std::string> missing = inference::PackedStack::missing(stack->config());
    if (!missing.empty()) return "there are no packed kernels for " + joined(missing);
    if (!stack->block(0).attention->qkv->weight.is_cpu()) return "packed weights run on a CPU";
  }
  const ModelParts parts = model.parts();
  if (parts.generates() && !inference::PackedEmbeddings::supports(*parts.embeddings))
    return "there are no packed kernels for embeddings of segments or of another width";
  return "";
}

void pack_stacks(Model& model, const inference::PackOptions& options) {
  const std::string lacking = lacking_kernels(model);
  TORCH_CHECK(lacking.empty(), lacking);
  const auto stacks = inference::stacks_of(model);
  std::set<const c10::TensorImpl*> packed;
  for (const auto& stack : stacks)
    for (const at::Tensor& parameter : stack->parameters()) packed.insert(parameter.unsafeGetTensorImpl());
  for (const at::Tensor& parameter : model.parameters())
    if (options.stored && !packed.contains(parameter.unsafeGetTensorImpl())) options.stored->load(parameter);
  std::vector<std::shared_ptr<StackEngine>> engines;
  for (const auto& stack : stacks)
    engines.push_back(std::make_shared<inference::PackedEngine>(*stack, options));
  options.require_all_taken();
  for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i]->run_on(engines[i]);
  model.eval();
}

}  // namespace zoo
