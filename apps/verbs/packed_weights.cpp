#include "apps/verbs/packed_weights.h"

#include <optional>

#include "apps/verbs/process_memory.h"
#include "apps/verbs/torch_options.h"
#include "data/base/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_encoder.h"

namespace zoo {
namespace {

using inference::PackOptions;
using kernels::WeightType;

std::optional<WeightType> type_named(const std::string& name) {
  if (name == "float32") return WeightType::kFloat32;
  if (name == "bfloat16") return WeightType::kBfloat16;
  if (name == "int8") return WeightType::kInt8;
  if (name == "int4") return WeightType::kInt4;
  return std::nullopt;
}

// Empty if the modules run the model.
std::optional<PackOptions> options_for(const ComputeOptions& compute, const PackedWeights& choice) {
  const std::string& name = choice.weights == "auto" ? compute.dtype : choice.weights;
  const std::optional<WeightType> weights = type_named(name);
  if (!weights) return std::nullopt;
  const bool exact = *weights == WeightType::kFloat32;
  return PackOptions{
      .weights = *weights,
      .cache = type_named(choice.cache).value_or(exact ? WeightType::kFloat32 : WeightType::kBfloat16),
      .release = true};
}

PackOptions pack_options(const LoadedModel& loaded, const ComputeOptions& compute,
                         const PackedWeights& choice) {
  PackOptions options = options_for(compute, choice).value();
  options.stored = loaded.stored;
  return options;
}

struct ModelHolder {
  std::shared_ptr<Model> held;
};

class OwningDecoder : private ModelHolder, public ModuleDecoder {
 public:
  explicit OwningDecoder(std::shared_ptr<Model> model)
      : ModelHolder{std::move(model)}, ModuleDecoder(*held) {}
};

// For models that run as modules: throws if the flags ask for packed weights or a packed cache.
void check_modules_fit(const PackedWeights& choice, const std::string& where) {
  if (choice.weights != "auto" && choice.weights != "modules")
    throw Error("--weights ", choice.weights, ": not available for this model", where,
                "; use --weights modules");
  if (choice.cache != "auto")
    throw Error("--cache ", choice.cache, ": not available for ",
                choice.weights == "modules" ? "--weights modules" : "this model" + where, "; leave it out");
}

}  // namespace

void PackedWeights::add_to(Flags& flags) {
  flags.choice("weights", weights, {"auto", "float32", "bfloat16", "int8", "int4", "modules"},
               "number format of the weights; int8 and int4 are quantization: faster and less exact; auto: "
               "that of --dtype; modules: computed by LibTorch in --dtype");
}

void PackedWeights::add_cache_to(Flags& flags) {
  flags.choice("cache", cache, {"auto", "float32", "bfloat16", "int8"},
               "number format of the KV cache; auto: float32 for float32 weights, else bfloat16");
}

bool packs(const ComputeOptions& compute, const PackedWeights& choice) {
  return options_for(compute, choice) && device_of(compute).is_cpu();
}

std::unique_ptr<DecodingModel> decoding_model(const LoadedModel& loaded, const ComputeOptions& compute,
                                              const PackedWeights& choice) {
  Model& model = *loaded.model;
  if (packs(compute, choice) && can_pack(model)) {
    give_back_idle_memory();
    return pack(model, pack_options(loaded, compute, choice));
  }
  check_modules_fit(choice, device_of(compute).is_cpu() ? "" : " on another device than the CPU");
  if (loaded.stored) loaded.stored->load_all();
  model.to(dtype_of(compute));
  return std::make_unique<OwningDecoder>(loaded.model);
}

std::unique_ptr<DecodingModel> load_decoding_model(const CheckpointConfig& checkpoint,
                                                   const ComputeOptions& compute,
                                                   const PackedWeights& choice) {
  // Packing starts from float32, which holds the file's weights exactly whatever --dtype says.
  const bool packed = packs(compute, choice);
  const LoadedModel loaded = load_model(
      checkpoint,
      {.dtype = packed ? at::kFloat : dtype_of(compute), .device = device_of(compute), .stored = packed});
  return decoding_model(loaded, compute, choice);
}

std::shared_ptr<Model> with_packed_encoder(const LoadedModel& loaded, const ComputeOptions& compute,
                                           const PackedWeights& choice) {
  if (packs(compute, choice) && can_pack_encoder(*loaded.model)) {
    give_back_idle_memory();
    return pack_encoder(loaded.model, pack_options(loaded, compute, choice));
  }
  check_modules_fit(choice, " here");
  if (loaded.stored) loaded.stored->load_all();
  return loaded.model;
}

}  // namespace zoo
