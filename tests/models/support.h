#pragma once

#include <filesystem>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "data/base/error.h"
#include "models/family.h"
#include "models/model.h"
#include "models/registry.h"

namespace zoo::test {

/// The largest difference as a part of the largest expected value: what "relative error" means in these
/// tests.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const at::Tensor wide = expected.to(at::kDouble);
  const double largest = wide.abs().max().item<double>();
  const double difference = (actual.detach().to(at::kDouble) - wide).abs().max().item<double>();
  // A NaN must fail a comparison with "<=" and this does.
  return largest > 0 ? difference / largest : difference;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

/// A decoder that is small enough to be quick and has no two sizes alike.
inline TransformerConfig small_config() {
  TransformerConfig config;
  config.vocab_size = 13;
  config.hidden_size = 12;
  config.num_layers = 3;
  config.num_heads = 2;
  config.intermediate_size = 20;
  config.max_positions = 16;
  return config;
}

/// An encoder as BERT's, as small.
inline TransformerConfig small_encoder_config() {
  TransformerConfig config = small_config();
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.embedding_norm = true;
  config.activation = Activation::kGelu;
  config.type_vocab_size = 2;
  config.pad_token_id = 0;
  config.trains_padding = false;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

/// A struct of its own: LibTorch's operator<< for std::pair keeps Catch2 3 from generating pairs.
struct FamilyConfig {
  std::string family;
  TransformerConfig config;
};

/// Small encoder-decoders of each kind, with the names of their families: T5's with shared and with own
/// tables of positions, and of the BART kind with learned positions, sinusoids, and sinusoids that skip
/// padding.
inline std::vector<FamilyConfig> small_encoder_decoders() {
  std::vector<FamilyConfig> forms;
  for (const char* family : {"t5", "umt5", "bart", "pegasus", "m2m_100"}) {
    TransformerConfig config = find_family(family).base;
    config.vocab_size = 17;
    config.hidden_size = 12;
    config.num_layers = config.num_heads = 2;
    config.num_decoder_layers = 3;
    config.intermediate_size = 20;
    config.max_positions = 16;
    if (config.position == PositionKind::kT5Buckets) {
      config.relative_buckets = 8;
      config.relative_max_distance = 10;
      config.head_dim = 5;
    } else {
      config.embedding_scale = 0;
    }
    // Positions skip it or not by the state of the cache: the tests' tokens do without it.
    if (config.position_count == PositionCount::kNotPadding) config.pad_token_id = 10;
    forms.push_back({family, config});
  }
  return forms;
}

/// `base`, a decoder with heads of an even number of dimensions, in the forms of younger families: each field
/// that changes what the blocks compute is in one of them.
inline std::vector<TransformerConfig> younger_forms(TransformerConfig base) {
  base.position = PositionKind::kRotary;
  base.tie_word_embeddings = false;  // a tied model is apt to repeat its tokens
  std::vector<TransformerConfig> forms(11, base);
  forms[0].sliding_window = 3;
  forms[0].query_key_norm = QueryKeyNorm::kPerHead;
  forms[1].norm_placement = NormPlacement::kSandwich;
  forms[1].norm = NormKind::kRmsNormPlusOne;
  forms[1].sliding_window = 4;
  forms[1].window_layers.assign(static_cast<std::size_t>(base.num_layers), false);
  forms[1].window_layers[1] = true;
  forms[1].window_rope_theta = 50.0;
  forms[1].embedding_scale = 0;
  forms[1].attention_softcap = 1.5;
  forms[1].logits_softcap = 3.0;
  forms[2].norm_placement = NormPlacement::kBranchEnd;
  forms[2].norm = NormKind::kRmsNorm;
  forms[2].query_key_norm = QueryKeyNorm::kWhole;
  forms[3].sublayer_order = SublayerOrder::kParallel;
  forms[3].rotary_dim = 2;
  forms[4].sublayer_order = SublayerOrder::kParallelOneNorm;
  forms[4].rotary_layers.assign(static_cast<std::size_t>(base.num_layers), true);
  forms[4].rotary_layers[0] = false;
  forms[5].rope_scaling = {
      .kind = RopeScalingKind::kYarn, .factor = 4.0, .original_max_positions = 6, .attention_factor = 1.2};
  forms[6].position = PositionKind::kLearned;
  forms[6].position_count = PositionCount::kNotMasked;
  forms[6].position_offset = 2;
  forms[7].residual_scale = 0.3;
  forms[7].norm = NormKind::kPlainRmsNorm;
  forms[7].activation = Activation::kRelu2;
  forms[7].lm_head_bias = true;
  for (const std::size_t i : {8, 9}) {
    forms[i].feed_forward_bias = false;
    forms[i].activation = Activation::kSwiGlu;
    forms[i].num_experts = 5;
    forms[i].expert_size = 7;
  }
  forms[8].experts_per_token = 3;
  forms[8].expert_weights = ExpertWeights::kOfAll;
  forms[8].shared_expert_size = 9;
  forms[8].expert_layers.assign(static_cast<std::size_t>(base.num_layers), true);
  forms[8].expert_layers[0] = false;
  forms[9].norm_placement = NormPlacement::kSandwich;
  forms[9].norm = NormKind::kRmsNorm;
  const auto pairs = static_cast<std::size_t>(base.head_size() / 2);
  forms[10].rope_scaling = {.kind = RopeScalingKind::kLongRope,
                            .original_max_positions = 64,
                            .attention_factor = 1.2,
                            .short_factors = std::vector<double>(pairs, 1.5),
                            .long_factors = std::vector<double>(pairs, 4.0)};
  return forms;
}

/// Small encoders with what only some families have, and the names of these.
inline std::vector<FamilyConfig> small_encoders() {
  std::vector<FamilyConfig> forms;
  for (const char* family : {"bert", "electra", "mpnet", "deberta-v2", "modernbert"}) {
    TransformerConfig config = find_family(family).base;
    config.vocab_size = 17;
    config.hidden_size = 12;
    config.num_layers = 4;
    config.num_heads = 2;
    config.intermediate_size = 20;
    config.max_positions = 28;
    config.pad_token_id = 1;
    if (config.sliding_window > 0) config.sliding_window = 6;
    if (config.position == PositionKind::kDisentangled) config.relative_buckets = 8;
    if (family == std::string("electra")) config.embedding_size = 10;
    find_family(family).keys.set_layers(config);
    forms.push_back({family, config});
  }
  return forms;
}

/// Weights drawn wide, biases and norms too, so that nothing is close to zero or one by its initial value.
inline std::shared_ptr<Model> random_model(const std::string& family, const TransformerConfig& config,
                                           Head head, std::uint64_t seed) {
  auto model = build_model(find_family(family), config, head, seed);
  const at::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (at::Tensor& parameter : model->parameters()) parameter.normal_(0.0, 0.4, generator);
  model->eval();
  return model;
}

inline std::shared_ptr<Model> random_gpt(const TransformerConfig& config, std::uint64_t seed) {
  return random_model("gpt2", config, Head::kCausalLm, seed);
}

inline at::Tensor random_ids(const TransformerConfig& config, std::int64_t batch, std::int64_t length,
                             std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randint(config.vocab_size, {batch, length}, generator, at::TensorOptions().dtype(at::kLong));
}

/// The text of the Error that `call` throws, or "" if it throws none.
template <class Call> std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The same of a c10::Error.
template <class Call> std::string c10_error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace zoo::test
