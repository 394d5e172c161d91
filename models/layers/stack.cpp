#include "models/layers/stack.h"

#include <array>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>

#include "models/layers/attention/positions.h"
#include "models/layers/recompute.h"
#include "models/ops/linear.h"

namespace zoo {
namespace {

// [B, 1, T, 1] bool, where a mask hides the query itself.
at::Tensor padding_queries(const StackInputs& inputs) {
  const std::int64_t length = inputs.embeddings.size(1);
  TORCH_CHECK(inputs.attention_mask.dim() == 2 && inputs.attention_mask.size(1) == length,
              "attention_mask must be [batch, ", length, "], got ", inputs.attention_mask.sizes());
  return inputs.attention_mask.to(inputs.embeddings.device()).eq(0).unsqueeze(1).unsqueeze(-1);
}

// [buckets, H] and buckets [T, S] to [1, H, T, S].
at::Tensor bucket_bias(const Embedding& table, const at::Tensor& buckets) {
  return table->forward(buckets).permute({2, 0, 1}).unsqueeze(0);
}

// What a block reads besides its inputs: its parameters and the low-rank terms of its projections.
std::vector<at::Tensor> leaves_of(const BlockImpl& block) {
  std::vector<at::Tensor> leaves = block.parameters();
  for (const auto& part : block.modules(/*include_self=*/false))
    if (const auto* linear = part->as<LinearImpl>(); linear != nullptr && linear->low_rank)
      for (const at::Tensor& leaf : {linear->low_rank->a, linear->low_rank->b, linear->low_rank->magnitude})
        if (leaf.defined()) leaves.push_back(leaf);
  return leaves;
}

}  // namespace

TransformerStackImpl::TransformerStackImpl(const TransformerConfig& config) : config_(config) {
  config.validate();
  TORCH_CHECK(config.shape != Shape::kEncoderDecoder, "one stack is an encoder or a decoder, not both");
  TORCH_CHECK(!config.cross_attention || config.shape == Shape::kDecoder,
              "only a decoder has cross-attention");
  blocks = register_module("blocks", torch::nn::ModuleList());
  const std::int64_t own = config.sharing == Sharing::kAllLayers ? 1 : config.num_layers;
  for (std::int64_t i = 0; i < own; ++i) blocks->push_back(Block(config, i));
  if (config.has_final_norm()) final_norm = register_module("final_norm", Norm(config));
  if (config.has_t5_buckets() && config.bucket_tables == BucketTables::kOneForAll)
    position_bias = register_module("position_bias", Embedding(config.relative_buckets, config.num_heads));
  if (config.position == PositionKind::kDisentangled) {
    distance_vectors =
        register_module("distance_vectors", Embedding(2 * config.relative_buckets, config.hidden_size));
    distance_norm = register_module("distance_norm", Norm(config));
  }
}

TransformerStackImpl::Positions TransformerStackImpl::positions(const StackInputs& inputs, std::int64_t past,
                                                                bool window) const {
  const at::Tensor& x = inputs.embeddings;
  const MaskShape shape{.queries = x.size(1),
                        .keys = past + x.size(1),
                        .causal = config_.shape == Shape::kDecoder,
                        .window = window ? config_.sliding_window : 0};
  Positions positions{.mask = self_mask(inputs, shape)};
  if (config_.has_t5_buckets() && !position_bias) positions.buckets = buckets(shape, x.device());
  if (config_.position == PositionKind::kRotary) positions.rotary = rotary_table(inputs, past, window);
  return positions;
}

AttentionMask TransformerStackImpl::self_mask(const StackInputs& inputs, const MaskShape& shape) const {
  const at::Tensor& x = inputs.embeddings;
  if (config_.attention != AttentionKind::kFull) {
    AttentionMask mask{.causal = shape.causal};
    if (inputs.attention_mask.defined()) mask.key_mask = inputs.attention_mask.to(x.device()).ne(0);
    return mask;
  }
  AttentionMask mask = make_attention_mask(inputs.attention_mask, shape, x.scalar_type(), x.device());
  mask.documents = inputs.documents;
  if (distance_vectors && mask.bias.defined()) {  // hides nothing from padding
    mask.bias = mask.bias.masked_fill(padding_queries(inputs), 0.0);
    mask.hidden_rows = at::Tensor();
  }
  if (position_bias)
    return with_bias(std::move(mask), bucket_bias(position_bias, buckets(shape, x.device())));
  if (config_.position == PositionKind::kAlibi) {
    const at::Tensor distances = relative_distances(shape.queries, shape.keys, x.device());
    return with_bias(std::move(mask), alibi_bias(distances, config_.num_heads).to(x.scalar_type()));
  }
  return mask;
}

at::Tensor TransformerStackImpl::buckets(const MaskShape& shape, const at::Device& device) const {
  return t5_buckets(relative_distances(shape.queries, shape.keys, device),
                    {.buckets = config_.relative_buckets,
                     .max_distance = config_.relative_max_distance,
                     .bidirectional = !shape.causal});
}

Distances TransformerStackImpl::distances(const StackInputs& inputs) const {
  if (!distance_vectors) return {};
  const at::Tensor& x = inputs.embeddings;
  Distances distances{.vectors = distance_norm->forward(distance_vectors->weight),
                      .rows = distance_rows(relative_distances(x.size(1), x.size(1), x.device()),
                                            config_.relative_buckets, config_.relative_max_distance)};
  if (inputs.attention_mask.defined()) distances.padding = padding_queries(inputs);
  return distances;
}

bool TransformerStackImpl::drops_layer() const {
  return is_training() && config_.layer_dropout > 0 && at::rand({}).item<double>() < config_.layer_dropout;
}

RotaryTable TransformerStackImpl::rotary_table(const StackInputs& inputs, std::int64_t past,
                                               bool window) const {
  const at::Tensor& x = inputs.embeddings;
  const auto options = at::TensorOptions().dtype(at::kLong).device(x.device());
  if (!inputs.positions.defined())
    check_longrope(config_.rope_scaling, static_cast<std::size_t>(past),
                   static_cast<std::size_t>(past + x.size(1)));
  const at::Tensor positions =
      inputs.positions.defined() ? inputs.positions : at::arange(past, past + x.size(1), options);
  return RotaryTable::make(positions, config_, window);
}

void TransformerStackImpl::check_documents(const StackInputs& inputs) const {
  if (inputs.documents.empty()) return;
  TORCH_CHECK(config_.shape == Shape::kDecoder && !config_.cross_attention && !inputs.cache && !engine_ &&
                  !inputs.attention_mask.defined() && config_.attention == AttentionKind::kFull &&
                  !config_.rope_scaling.depends_on_length(),
              "rows of several documents are for decoders with full attention and positions that do not "
              "depend on a row's length, without a cache, a mask or another engine");
  const std::int64_t length = inputs.embeddings.size(1);
  std::int64_t end = 0;
  for (const std::int64_t each : inputs.documents) {
    TORCH_CHECK(each > 0 && each <= length - end % length, "a document of ", each,
                " positions does not fit into its row of ", length);
    end += each;
  }
  TORCH_CHECK(end == inputs.embeddings.size(0) * length, "documents have ", end, " positions, their rows ",
              inputs.embeddings.size(0) * length);
}

void TransformerStackImpl::check_memory(const StackInputs& inputs) const {
  const at::Tensor& memory = inputs.memory;
  TORCH_CHECK(memory.defined() == config_.cross_attention, "a stack ",
              config_.cross_attention ? "with" : "without", " cross-attention was given ",
              memory.defined() ? "a" : "no", " memory");
  if (!memory.defined()) return;
  TORCH_CHECK(memory.dim() == 3 && memory.size(0) == inputs.embeddings.size(0) &&
                  memory.size(2) == config_.hidden_size,
              "the memory must be [", inputs.embeddings.size(0), ", length, ", config_.hidden_size, "], got ",
              memory.sizes());
}

bool TransformerStackImpl::is_hooked(const StackInputs& inputs) const {
  if (inputs.interventions.empty() && !inputs.output_activations) return false;
  TORCH_CHECK(!is_training(), "activations are recorded and replaced in evaluation mode alone");
  check_interventions(inputs.interventions, config_, inputs.embeddings.sizes());
  for (const Intervention& change : inputs.interventions)
    TORCH_CHECK(inputs.cache == nullptr || change.positions.empty(),
                "with a cache, interventions are at all positions");
  return true;
}

BlockImpl& TransformerStackImpl::block(std::int64_t layer) const {
  const auto own = static_cast<std::size_t>(layer) % blocks->size();  // always 0 if all layers share one
  return *blocks->ptr(own)->as<BlockImpl>();
}

// The graph tracks the block's own tensors; inputs without a gradient are copied with the contexts.
at::Tensor TransformerStackImpl::run_recomputed(const at::Tensor& x, const SelfAttentionContext& context,
                                                const CrossAttentionContext& cross) const {
  std::vector<at::Tensor> inputs{x};
  for (const at::Tensor* tensor : {&context.mask.bias, &context.distances.vectors, &cross.memory})
    if (tensor->defined()) inputs.push_back(*tensor);
  const auto rotary =
      context.rotary != nullptr ? std::make_shared<const RotaryTable>(*context.rotary) : nullptr;
  const auto part = [this, context, cross, rotary](const std::vector<at::Tensor>& given) {
    SelfAttentionContext self = context;
    CrossAttentionContext other = cross;
    self.rotary = rotary.get();
    std::size_t next = 1;
    for (at::Tensor* tensor : {&self.mask.bias, &self.distances.vectors, &other.memory})
      if (tensor->defined()) *tensor = given[next++];
    at::Tensor logits;
    self.router_logits = self.router_logits != nullptr ? &logits : nullptr;
    std::vector<at::Tensor> results{block(self.layer).forward(given[0], self, other)};
    if (logits.defined()) results.push_back(logits);
    return results;
  };
  const std::vector<at::Tensor> results = recompute(part, inputs, leaves_of(block(context.layer)));
  if (context.router_logits != nullptr) *context.router_logits = results[1];
  return results[0];
}

StackOutput TransformerStackImpl::forward(const StackInputs& inputs) {
  check_memory(inputs);
  check_documents(inputs);
  if (engine_) return engine_->forward(inputs);
  at::Tensor x = inputs.embeddings;
  const std::int64_t length = x.size(1), past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  std::array<std::optional<Positions>, 2> known;  // without and with a window
  SelfAttentionContext context{.cache = inputs.cache};
  CrossAttentionContext cross{.memory = inputs.memory, .cache = inputs.cache};
  if (config_.cross_attention) {
    const MaskShape shape{.queries = length, .keys = inputs.memory.size(1)};
    cross.mask = make_attention_mask(inputs.memory_mask, shape, x.scalar_type(), x.device());
  }

  context.distances = distances(inputs);
  if (const at::Tensor& padding = context.distances.padding; padding.defined())
    x = x.masked_fill(padding.squeeze(1), 0.0);

  const bool recomputes = recomputes_blocks_ && at::GradMode::is_enabled() && inputs.cache == nullptr &&
                          !inputs.output_attentions && !inputs.output_heads;
  const bool hooked = is_hooked(inputs);
  std::optional<LayerHook> hook;
  StackOutput output;
  for (; context.layer < config_.num_layers; ++context.layer) {
    if (inputs.output_hidden_states) output.hidden_states.push_back(x);
    if (drops_layer()) continue;
    cross.layer = context.layer;
    const bool window = config_.has_window(context.layer);
    if (!known[window]) known[window] = positions(inputs, past, window);
    context.mask = known[window]->mask;
    if (const at::Tensor& buckets = known[window]->buckets; buckets.defined())
      context.mask =
          with_bias(context.mask, bucket_bias(block(context.layer).attention->position_bias, buckets));
    context.rotary = config_.rotates(context.layer) ? &*known[window]->rotary : nullptr;
    const bool routes = inputs.output_router_logits && config_.has_experts(context.layer);
    context.router_logits = routes ? &output.router_logits.emplace_back() : nullptr;
    if (recomputes) {
      x = run_recomputed(x, context, cross);
      continue;
    }
    if (inputs.output_attentions) context.weights = &output.attentions.emplace_back();
    if (inputs.output_attentions && config_.cross_attention)
      cross.weights = &output.cross_attentions.emplace_back();
    if (inputs.output_heads) context.heads = &output.heads.emplace_back();
    if (hooked) {
      auto* record = inputs.output_activations ? &output.activations.emplace_back() : nullptr;
      context.hook = cross.hook = &hook.emplace(inputs.interventions, config_.shape, context.layer, record);
    }
    PartWeights* const keeper = part_weights();
    TORCH_CHECK(keeper == nullptr || !at::GradMode::is_enabled(),
                "weights that other ranks keep are recomputed, which does not give the outputs of layers");
    const PartScope scope(keeper,
                          keeper != nullptr ? leaves_of(block(context.layer)) : std::vector<at::Tensor>());
    x = block(context.layer).forward(std::move(x), context, cross);
  }
  if (final_norm) x = final_norm(x);
  x = ops::dropout(x, is_training() ? config_.final_dropout : 0.0);
  if (inputs.output_hidden_states) output.hidden_states.push_back(x);
  if (inputs.cache != nullptr) inputs.cache->advance(length);
  output.hidden = std::move(x);
  return output;
}

EncoderDecoderStackImpl::EncoderDecoderStackImpl(const TransformerConfig& config) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoderDecoder, "an encoder-decoder was given the shape of one stack");
  encoder = register_module("encoder", TransformerStack(config.encoder_part()));
  decoder = register_module("decoder", TransformerStack(config.decoder_part()));
}

EncoderDecoderOutput EncoderDecoderStackImpl::forward(const EncoderDecoderInputs& inputs) {
  EncoderDecoderOutput output;
  check_stacks(inputs.interventions, /*has_encoder=*/!inputs.memory.defined(), /*has_decoder=*/true);
  if (inputs.memory.defined()) {
    output.encoder.hidden = inputs.memory;
  } else {
    output.encoder = encoder(observing(
        StackInputs{.embeddings = inputs.encoder_embeddings, .attention_mask = inputs.attention_mask},
        inputs));
  }
  output.decoder = decoder(observing(StackInputs{.embeddings = inputs.decoder_embeddings,
                                                 .attention_mask = inputs.decoder_attention_mask,
                                                 .positions = inputs.decoder_positions,
                                                 .memory = output.encoder.hidden,
                                                 .memory_mask = inputs.attention_mask,
                                                 .cache = inputs.cache},
                                     inputs));
  return output;
}

}  // namespace zoo
