#include "apps/packed_weights.h"

#include <optional>

#include "apps/process_memory.h"
#include "apps/torch_options.h"
#include "data/base/error.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_encoder.h"
#include "models/io/checkpoint.h"

namespace zoo {
namespace {

using inference::PackOptions;
using kernels::WeightType;

// Nothing: the modules shall answer.
std::optional<PackOptions> options_for(const ComputeOptions& compute, const PackedWeights& choice) {
  const std::string& name = choice.weights == "auto" ? compute.dtype : choice.weights;
  PackOptions options{.cache = WeightType::kBfloat16, .release = true};
  if (name == "float32") {
    options.weights = options.cache = WeightType::kFloat32;
  } else if (name == "bfloat16") {
    options.weights = WeightType::kBfloat16;
  } else if (name == "int8") {
    options.weights = WeightType::kInt8;
  } else if (name == "int4") {
    options.weights = WeightType::kInt4;
  } else {
    return std::nullopt;
  }
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

bool is_demanded(const PackedWeights& choice) {
  return choice.weights != "auto" && choice.weights != "modules";
}

}  // namespace

void PackedWeights::add_to(Flags& flags) {
  flags.choice("weights", weights, {"auto", "float32", "bfloat16", "int8", "int4", "modules"},
               "how the weights are kept for answering: fewer bits are faster and less exact; modules are "
               "LibTorch's operators");
}

std::unique_ptr<DecodingModel> decoding_model(std::shared_ptr<Model> model, const ComputeOptions& compute,
                                              const PackedWeights& choice) {
  const c10::Device device = device_of(compute);
  const std::optional<PackOptions> options = options_for(compute, choice);
  if (options && device.is_cpu() && can_pack(*model)) {
    give_back_idle_memory();
    return pack(*model, *options);
  }
  if (is_demanded(choice)) {
    throw Error("--weights ", choice.weights, ": our own kernels do not serve this model",
                device.is_cpu() ? "" : " on another device than the CPU", "; --weights modules does");
  }
  model->to(dtype_of(compute));
  return std::make_unique<OwningDecoder>(std::move(model));
}

std::unique_ptr<DecodingModel> load_decoding_model(const std::filesystem::path& directory,
                                                   const ComputeOptions& compute,
                                                   const PackedWeights& choice) {
  // What is packed is read from the file as it is, whatever type the modules would have.
  const bool packs = options_for(compute, choice) && device_of(compute).is_cpu();
  LoadedModel loaded =
      load_model(directory, {.dtype = packs ? at::kFloat : dtype_of(compute), .device = device_of(compute)});
  return decoding_model(std::move(loaded.model), compute, choice);
}

void pack_encoder_of(Model& model, const ComputeOptions& compute, const PackedWeights& choice) {
  const std::optional<PackOptions> options = options_for(compute, choice);
  if (options && device_of(compute).is_cpu() && can_pack_encoder(model)) {
    give_back_idle_memory();
    return pack_encoder(model, *options);
  }
  if (is_demanded(choice))
    throw Error("--weights ", choice.weights,
                ": our own kernels do not serve this model here; --weights modules does");
}

}  // namespace zoo
