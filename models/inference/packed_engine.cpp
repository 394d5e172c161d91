#include "models/inference/packed_engine.h"

#include <cstring>
#include <set>

#include <ATen/ops/zeros.h>

#include "models/layers/embeddings.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo {
namespace inference {
namespace {

// Runs the rows that a mask keeps, sequence by sequence.
class PackedEncoder {
 public:
  PackedEncoder(TransformerStackImpl& stack, const PackOptions& options) : stack_(stack, options) {}

  // Hidden states after the last norm; positions that the mask hides give zeros.
  at::Tensor run(const at::Tensor& embeddings, const at::Tensor& attention_mask) {
    const at::Tensor given = embeddings.to(at::kFloat).contiguous();
    const std::int64_t batch = given.size(0), length = given.size(1), width = given.size(2);
    const std::vector<std::int64_t> kept = kept_places(attention_mask, batch, length);
    const std::size_t bytes = static_cast<std::size_t>(width) * sizeof(float);
    x_.grow_to(kept.size() * bytes);
    const auto* from = reinterpret_cast<const std::byte*>(given.const_data_ptr<float>());
    Pass pass{.x = x_.as<float>(), .rows = kept.size()};
    for (std::size_t i = 0; i < kept.size(); ++i) {
      std::memcpy(x_.data() + i * bytes, from + static_cast<std::size_t>(kept[i]) * bytes, bytes);
      const bool begins = i == 0 || kept[i] / length != kept[i - 1] / length;
      if (begins) pass.sequences.push_back({.first_row = i, .count = 0});
      ++pass.sequences.back().count;
    }
    if (!kept.empty()) stack_.run(pass, workspace_);
    at::Tensor result = at::zeros({batch, length, width}, at::kFloat);
    auto* to = reinterpret_cast<std::byte*>(result.mutable_data_ptr<float>());
    for (std::size_t i = 0; i < kept.size(); ++i)
      std::memcpy(to + static_cast<std::size_t>(kept[i]) * bytes, x_.data() + i * bytes, bytes);
    return result.to(embeddings.scalar_type());
  }

 private:
  // Indices of the kept positions among all [B T]. A gap inside a row changes the distances between its
  // tokens: only learned positions, or none, allow one, and no window.
  std::vector<std::int64_t> kept_places(const at::Tensor& mask, std::int64_t batch,
                                        std::int64_t length) const {
    std::vector<std::int64_t> kept;
    const at::Tensor flags = mask.defined() ? mask.ne(0).contiguous() : at::Tensor();
    for (std::int64_t place = 0; place < batch * length; ++place) {
      if (flags.defined() && !flags.const_data_ptr<bool>()[place]) continue;
      const bool gap = !kept.empty() && kept.back() / length == place / length && kept.back() + 1 != place;
      const PositionKind position = stack_.config().position;
      const bool absolute = position == PositionKind::kLearned || position == PositionKind::kNone;
      TORCH_CHECK(!gap || (absolute && stack_.config().sliding_window == 0),
                  "a mask that hides what stands between tokens changes their distances");
      kept.push_back(place);
    }
    return kept;
  }

  PackedStack stack_;
  Workspace workspace_;
  Memory x_;
};

// The model's own embeddings and head around a packed stack.
class PackedEncoderModel : public Model {
 public:
  PackedEncoderModel(std::shared_ptr<Model> model, const PackOptions& options)
      : Model(model->config()),
        model_(register_module("model", std::move(model))),
        embeddings_(model_->parts().embeddings),
        encoder_(*model_->parts().encoder, options) {
    eval();
  }

  ModelOutput forward(const ModelInputs& given) override {
    TORCH_CHECK(!is_training() && !at::GradMode::is_enabled(), "packed weights have no gradients");
    TORCH_CHECK(given.interventions.empty() && !given.output_activations,
                "packed weights record no activations and take no interventions");
    ModelInputs inputs = given;
    inputs.memory = encoder_.run(embeddings_->forward({.ids = inputs.input_ids,
                                                       .position_ids = inputs.position_ids,
                                                       .token_type_ids = inputs.token_type_ids}),
                                 inputs.attention_mask);
    return model_->forward(inputs);
  }

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<EmbeddingsImpl> embeddings_;
  PackedEncoder encoder_;
};

// Gives the modules around the stack, which compute as they are, their weights.
void load_around_stack(const Model& model, const StoredWeights& stored) {
  std::set<const c10::TensorImpl*> packed;
  for (const at::Tensor& parameter : model.parts().encoder->parameters())
    packed.insert(parameter.unsafeGetTensorImpl());
  for (const at::Tensor& parameter : model.parameters())
    if (!packed.contains(parameter.unsafeGetTensorImpl())) stored.load(parameter);
}

}  // namespace
}  // namespace inference

bool can_pack_encoder(const Model& model) {
  const ModelParts parts = model.parts();
  return parts.encoder && !parts.decoder && inference::PackedStack::supports(*parts.encoder);
}

std::shared_ptr<Model> pack_encoder(std::shared_ptr<Model> model, const inference::PackOptions& options) {
  TORCH_CHECK(can_pack_encoder(*model), "there is no encoder of a kind that can be packed");
  if (options.stored) inference::load_around_stack(*model, *options.stored);
  auto packed = std::make_shared<inference::PackedEncoderModel>(std::move(model), options);
  options.require_all_taken();
  return packed;
}

}  // namespace zoo
