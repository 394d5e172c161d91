#include "apps/verbs/packed_weights.h"

#include "data/base/process_memory.h"
#include "apps/verbs/torch_options.h"
#include "data/base/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"
#include "models/inference/save_packed.h"

namespace zoo {
namespace {

using inference::PackOptions;
using kernels::WeightType;

c10::Device device_with(const ComputeOptions& compute, const PackedWeights& choice, bool holds_packed) {
  const bool packs = (choice.weights != "auto" && choice.weights != "modules") || choice.cache != "auto";
  return compute.device == "auto" && (packs || holds_packed) ? c10::Device(c10::kCPU) : device_of(compute);
}

// Empty if the modules run the model.
std::optional<PackOptions> options_for(const LoadedModel& loaded, const ComputeOptions& compute,
                                       const PackedWeights& choice) {
  const auto packed = loaded.stored ? loaded.stored->packed() : nullptr;
  if (!device_with(compute, choice, packed != nullptr).is_cpu()) return std::nullopt;
  const bool has_blocks = loaded.stored && loaded.stored->has_blocks();
  const std::string& name = packed                     ? packed->weights()
                            : choice.weights != "auto" ? choice.weights
                            : has_blocks               ? "gguf"
                                                       : compute.dtype;
  if (choice.weights == "gguf" && loaded.model && !has_blocks)
    throw Error("--weights gguf: the model is no GGUF file with quantized weights; use --weights auto");
  const std::optional<WeightType> weights = weight_type_named(name);
  if (!weights) return std::nullopt;
  const bool exact = *weights == WeightType::kFloat32;
  return PackOptions{
      .weights = *weights,
      .cache = weight_type_named(choice.cache).value_or(exact ? WeightType::kFloat32 : WeightType::kBfloat16),
      .release = true,
      .stored = loaded.stored};
}

struct ModelHolder {
  std::shared_ptr<Model> held;
};

class OwningDecoder : private ModelHolder, public ModuleDecoder {
 public:
  explicit OwningDecoder(std::shared_ptr<Model> model)
      : ModelHolder{std::move(model)}, ModuleDecoder(*held) {}
};

// The reason why modules run the model.
std::string no_kernels(const Model& model, const PackedWeights& choice, const ComputeOptions& compute) {
  if (!device_with(compute, choice, false).is_cpu()) return "packed weights run on a CPU";
  return lacking_kernels(model);
}

// For models that run as modules: throws if the flags ask for packed weights or a packed cache.
void check_modules_fit(const PackedWeights& choice, const Model& model, const ComputeOptions& compute) {
  if (choice.weights != "auto" && choice.weights != "modules")
    throw Error("--weights ", choice.weights, ": ", no_kernels(model, choice, compute),
                "; use --weights modules");
  if (choice.cache == "auto") return;
  const bool asked = choice.weights == "modules";
  throw Error("--cache ", choice.cache, ": ",
              asked ? "--weights modules has no other cache" : no_kernels(model, choice, compute),
              "; leave it out");
}

}  // namespace

void PackedWeights::add_to(Flags& flags) {
  flags.choice(
      "weights", weights, {"auto", "gguf", "float32", "bfloat16", "int8", "int4", "modules"},
      "number format of the weights; int8 and int4 are quantization: faster and less exact; gguf: as "
      "a quantized GGUF file has them; auto: gguf for such a file, else that of --dtype; modules: "
      "computed by LibTorch in --dtype");
}

void PackedWeights::add_cache_to(Flags& flags) {
  flags.choice("cache", cache, {"auto", "float32", "bfloat16", "int8"},
               "number format of the KV cache; auto: float32 for float32 weights, else bfloat16");
}

std::optional<WeightType> weight_type_named(const std::string& name) {
  for (const auto type : {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4,
                          WeightType::kBlocks})
    if (name == name_of(type)) return type;
  return std::nullopt;
}

c10::Device device_of(const ComputeOptions& compute, const PackedWeights& choice,
                      const CheckpointConfig& checkpoint) {
  return device_with(compute, choice, checkpoint.packed_parts() != nullptr);
}

bool packs(const CheckpointConfig& checkpoint, const ComputeOptions& compute, const PackedWeights& choice) {
  const auto packed = checkpoint.packed_parts();
  if (!packed) return options_for({}, compute, choice).has_value();
  if (choice.weights == "modules" || !device_of(compute, choice, checkpoint).is_cpu())
    packed->refuse_modules();
  if (choice.weights != "auto" && choice.weights != packed->weights())
    throw Error("--weights ", choice.weights, ": ", checkpoint.directory, " holds packed weights of type ",
                packed->weights(), "; leave --weights out, or export the model again");
  return true;
}

std::unique_ptr<DecodingModel> decoding_model(const LoadedModel& loaded, const ComputeOptions& compute,
                                              const PackedWeights& choice) {
  Model& model = *loaded.model;
  if (const auto options = options_for(loaded, compute, choice); options && can_pack(model)) {
    give_back_idle_memory();
    return pack(model, *options);
  }
  check_modules_fit(choice, model, compute);
  if (loaded.stored) loaded.stored->load_all();
  model.to(dtype_of(compute));
  return std::make_unique<OwningDecoder>(loaded.model);
}

CheckpointConfig read_writing_checkpoint(const std::filesystem::path& directory) {
  CheckpointConfig checkpoint = read_checkpoint_config(directory);
  if (checkpoint.head != Head::kBase) return checkpoint;
  for (const auto& [head, architecture] : checkpoint.family->heads)
    if (head == Head::kCausalLm || head == Head::kSeq2SeqLm) checkpoint.head = head;
  return checkpoint;
}

void require_writes(const CheckpointConfig& checkpoint) {
  if (checkpoint.head != Head::kCausalLm && checkpoint.head != Head::kSeq2SeqLm)
    throw Error(checkpoint.directory, " has a ", name_of(checkpoint.head),
                " head; expected causal-lm or seq2seq-lm");
}

std::unique_ptr<DecodingModel> load_decoding_model(const CheckpointConfig& checkpoint,
                                                   const ComputeOptions& compute,
                                                   const PackedWeights& choice) {
  require_writes(checkpoint);
  // Packing starts from float32, which holds the file's weights exactly whatever --dtype says.
  const bool packed = packs(checkpoint, compute, choice);
  const LoadedModel loaded = load_model(checkpoint, {.dtype = packed ? at::kFloat : dtype_of(compute),
                                                     .device = device_of(compute, choice, checkpoint),
                                                     .stored = packed});
  return decoding_model(loaded, compute, choice);
}

void make_ready(const LoadedModel& loaded, const ComputeOptions& compute, const PackedWeights& choice) {
  if (choice.cache != "auto")
    throw Error("--cache ", choice.cache, ": whole passes keep no keys and values; leave it out");
  const auto options = options_for(loaded, compute, choice);
  if (options && lacking_kernels(*loaded.model).empty()) {
    give_back_idle_memory();
    return pack_stacks(*loaded.model, *options);
  }
  check_modules_fit(choice, *loaded.model, compute);
  if (loaded.stored) loaded.stored->load_all();
}

void check_packed_weights(const CheckpointConfig& checkpoint) {
  const LoadedModel loaded = load_model(checkpoint, {.stored = true});
  if (can_pack(*loaded.model))
    decoding_model(loaded, {}, {});
  else
    make_ready(loaded, {}, {});
}

}  // namespace zoo
