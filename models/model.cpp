#include "models/model.h"

#include <array>

#include "models/layers/embeddings.h"
#include "models/layers/encoder_decoder_stack.h"
#include "models/layers/initial_weights.h"

namespace zoo {
namespace {

struct Component {
  const char* path;  // beginning of the parameters' names, without the numbers of layers
  const char* name;
};
// In the order in which tables show them. Of several that fit a parameter the first counts.
constexpr std::array<Component, 45> kComponents{{
    {"embeddings.token.", "token embedding"},
    {"embeddings.position.", "position embedding"},
    {"decoder_embeddings.position.", "position embedding"},
    {"embeddings.token_type.", "token type embedding"},
    {"embeddings.projection.", "embedding projection"},
    {"embed.", "token embedding"},
    {"stack.position_bias.", "relative positions"},
    {"stack.encoder.position_bias.", "relative positions"},
    {"stack.decoder.position_bias.", "relative positions"},
    {"stack.blocks.attention.position_bias.", "relative positions"},
    {"stack.distance_vectors.", "relative positions"},
    {"stack.distance_norm.", "relative positions"},
    {"stack.encoder.blocks.attention.position_bias.", "relative positions"},
    {"stack.decoder.blocks.attention.position_bias.", "relative positions"},
    {"stack.encoder.blocks.attention.", "encoder attention"},
    {"stack.encoder.blocks.feed_forward.", "encoder feed-forward"},
    {"stack.decoder.blocks.attention.", "decoder attention"},
    {"stack.decoder.blocks.cross_attention.", "decoder cross-attention"},
    {"stack.decoder.blocks.feed_forward.", "decoder feed-forward"},
    {"stack.blocks.attention.", "attention"},
    {"attention.", "attention"},
    {"qkv.", "attention"},
    {"stack.blocks.feed_forward.", "feed-forward"},
    {"stack.blocks.experts.router.", "router of experts"},
    {"stack.blocks.experts.shared", "shared expert"},
    {"stack.blocks.experts.", "experts"},
    {"embeddings.norm.", "norms"},
    {"decoder_embeddings.norm.", "norms"},
    {"stack.", "norms"},
    {"pooler.", "pooler"},
    {"prediction_dense.", "masked-lm head"},
    {"prediction_norm.", "masked-lm head"},
    {"prediction_bias", "masked-lm head"},
    {"decoder.", "masked-lm head"},
    {"next_sentence.", "next-sentence head"},
    {"discriminator_dense.", "replaced-token head"},
    {"discriminator.", "replaced-token head"},
    {"span.", "question-answering head"},
    {"sentence_dense.", "classifier"},
    {"sentence_classifier.", "classifier"},
    {"token_classifier.", "classifier"},
    {"score.", "classifier"},
    {"fc.", "classifier"},
    {"lm_head.", "output projection"},
    {"linear.", "output projection"},
}};

// "stack.blocks.11.attention.qkv.weight" -> "stack.blocks.attention.qkv.weight"
std::string without_numbers(const std::string& name) {
  std::string path;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size() - 1) + 1;
    if (name[begin] < '0' || name[begin] > '9') path += name.substr(begin, end - begin);
    begin = end;
  }
  return path;
}

std::size_t component_of(const std::string& name) {
  const std::string path = without_numbers(name);
  for (std::size_t i = 0; i < kComponents.size(); ++i) {
    if (path.starts_with(kComponents[i].path)) return i;
  }
  TORCH_CHECK(false, "the parameter '", name, "' belongs to no component");
}

void initialize_children(torch::nn::Module& module, double std, const at::Generator& generator) {
  for (const auto& child : module.children()) {
    if (auto* stack = child->as<TransformerStackImpl>()) {
      initialize(*stack, stack->config(), generator);
    } else if (child->as<EncoderDecoderStackImpl>() != nullptr) {
      initialize_children(*child, std, generator);
    } else {
      initialize(*child, std, generator);
    }
  }
}

}  // namespace

void Model::initialize(at::Generator generator) {
  initialize_children(*this, config_.initializer_range, generator);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& bias : parameters(/*recurse=*/false)) bias.zero_();
}

std::vector<std::pair<std::string, std::int64_t>> Model::components() const {
  std::array<std::int64_t, kComponents.size()> counts{};
  std::array<bool, kComponents.size()> present{};
  for (const auto& parameter : named_parameters()) {
    const std::size_t index = component_of(parameter.key());
    counts[index] += parameter.value().numel();
    present[index] = true;
  }
  std::vector<std::pair<std::string, std::int64_t>> rows;
  for (std::size_t i = 0; i < kComponents.size(); ++i) {
    if (!present[i]) continue;
    if (!rows.empty() && rows.back().first == kComponents[i].name) {
      rows.back().second += counts[i];
    } else {
      rows.emplace_back(kComponents[i].name, counts[i]);
    }
  }
  const ModelParts made_of = parts();
  if (made_of.generates() && made_of.head.weight.is_same(made_of.embeddings->token->weight))
    rows.emplace_back("output projection (tied)", 0);
  return rows;
}

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace zoo
