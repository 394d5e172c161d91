#include "models/tasks/inference_loading.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <ATen/Context.h>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/process_memory.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/save_packed.h"

namespace zoo {
namespace {

using inference::PackOptions;
using kernels::WeightType;

void check_word(std::string_view field, const std::string& word, const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) == words.end())
    throw UnfitField(Field{field}, ": expected one of ", joined(words), ", got '", word, "'");
}

// Throws for what no model takes.
void check(const ComputeOptions& compute) {
  check_word("device", compute.device.starts_with("cuda:") ? "cuda:N" : compute.device,
             {"auto", "cpu", "cuda", "cuda:N"});
  check_word("dtype", compute.dtype, {"float32", "bfloat16", "float16"});
  check_word("weights", compute.weights, {"auto", "gguf", "float32", "bfloat16", "int8", "int4", "modules"});
  check_word("cache", compute.cache, {"auto", "float32", "bfloat16", "int8"});
  require_in(at_least(1), "threads", compute.threads);
  require_in(at_least(0), "seed", compute.seed);
}

c10::Device device_with(const ComputeOptions& compute, bool holds_packed) {
  check(compute);
  const bool packs = (compute.weights != "auto" && compute.weights != "modules") || compute.cache != "auto";
  return compute.device == "auto" && (packs || holds_packed) ? c10::Device(c10::kCPU) : device_of(compute);
}

// Empty if the modules run the model.
std::optional<PackOptions> options_for(const LoadedModel& loaded, const ComputeOptions& compute) {
  const auto packed = loaded.stored ? loaded.stored->packed() : nullptr;
  if (!device_with(compute, packed != nullptr).is_cpu()) return std::nullopt;
  const bool has_blocks = loaded.stored && loaded.stored->has_blocks();
  const std::string& name = packed                      ? packed->weights()
                            : compute.weights != "auto" ? compute.weights
                            : has_blocks                ? "gguf"
                                                        : compute.dtype;
  if (compute.weights == "gguf" && loaded.model && !has_blocks)
    throw UnfitField(Field{"weights"}, " gguf: the model is no GGUF file with quantized weights; use ",
                     Field{"weights"}, " auto");
  const std::optional<WeightType> weights = weight_type_named(name);
  if (!weights) return std::nullopt;
  const bool exact = *weights == WeightType::kFloat32;
  return PackOptions{
      .weights = *weights,
      .cache =
          weight_type_named(compute.cache).value_or(exact ? WeightType::kFloat32 : WeightType::kBfloat16),
      .release = true,
      .stored = loaded.stored};
}

// The reason why modules run the model.
std::string no_kernels(const Model& model, const ComputeOptions& compute) {
  if (!device_with(compute, false).is_cpu()) return "packed weights run on a CPU";
  return lacking_kernels(model);
}

// For models that run as modules: throws if the flags ask for packed weights or a packed cache.
void check_modules_fit(const Model& model, const ComputeOptions& compute) {
  if (compute.weights != "auto" && compute.weights != "modules")
    throw UnfitField(Field{"weights"}, " ", compute.weights, ": ", no_kernels(model, compute), "; use ",
                     Field{"weights"}, " modules");
  if (compute.cache == "auto") return;
  if (compute.weights == "modules")
    throw UnfitField(Field{"cache"}, " ", compute.cache, ": ", Field{"weights"},
                     " modules has no other cache; leave it out");
  throw UnfitField(Field{"cache"}, " ", compute.cache, ": ", no_kernels(model, compute), "; leave it out");
}

}  // namespace

c10::Device device_of(const ComputeOptions& options) {
  check(options);
  if (options.device == "cpu") return c10::kCPU;  // without waking a GPU
  const bool has_cuda = at::hasCUDA() && at::globalContext().getAcceleratorHooksInterface().deviceCount() > 0;
  if (options.device == "auto" && !has_cuda) return c10::kCPU;
  if (!has_cuda)
    throw FieldError(Field{"device"}, " ", options.device,
                     ": this LibTorch or this machine has no CUDA device");
  // cuDNN's attention makes a plan for each new length, which takes longer than the step of a decoder.
  at::globalContext().setSDPUseCuDNN(false);
  c10::Device device(options.device == "auto" ? "cuda" : options.device);
  if (!device.has_index()) device = c10::Device(c10::kCUDA, 0);
  const auto count = at::globalContext().getAcceleratorHooksInterface().deviceCount();
  if (device.index() >= count)
    throw FieldError(Field{"device"}, " ", options.device, ": there are ", int{count}, " CUDA devices");
  return device;
}

c10::ScalarType dtype_of(const ComputeOptions& options) {
  if (options.dtype == "bfloat16") return c10::kBFloat16;
  return options.dtype == "float16" ? c10::kHalf : c10::kFloat;
}

std::optional<WeightType> weight_type_named(const std::string& name) {
  for (const auto type : {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4,
                          WeightType::kBlocks})
    if (name == name_of(type)) return type;
  return std::nullopt;
}

c10::Device device_of(const ComputeOptions& compute, const CheckpointConfig& checkpoint) {
  return device_with(compute, checkpoint.packed_parts() != nullptr);
}

bool packs(const CheckpointConfig& checkpoint, const ComputeOptions& compute) {
  const auto packed = checkpoint.packed_parts();
  if (!packed) return options_for({}, compute).has_value();
  if (compute.weights == "modules" || !device_of(compute, checkpoint).is_cpu()) packed->refuse_modules();
  if (compute.weights != "auto" && compute.weights != packed->weights())
    throw UnfitField(Field{"weights"}, " ", compute.weights, ": ", checkpoint.directory,
                     " holds packed weights of type ", packed->weights(), "; leave ", Field{"weights"},
                     " out, or export the model again");
  return true;
}

std::unique_ptr<DecodingModel> decoding_model(const LoadedModel& loaded, const ComputeOptions& compute) {
  Model& model = *loaded.model;
  if (const auto options = options_for(loaded, compute); options && can_pack(model)) {
    give_back_idle_memory();
    return pack(model, *options);
  }
  check_modules_fit(model, compute);
  if (loaded.stored) loaded.stored->load_all();
  model.to(dtype_of(compute));
  return std::make_unique<ModuleDecoder>(loaded.model);
}

CheckpointConfig read_writing_checkpoint(const ModelPath& directory) {
  CheckpointConfig checkpoint = read_checkpoint_config(directory);
  if (checkpoint.head != Head::kBase) return checkpoint;
  for (const auto& [head, architecture] : checkpoint.family->heads)
    if (head == Head::kCausalLm || head == Head::kSeq2SeqLm) checkpoint.head = head;
  return checkpoint;
}

void require_head(const ModelPath& directory, Head head, std::initializer_list<Head> expected) {
  if (std::ranges::find(expected, head) != expected.end()) return;
  std::string names;
  for (const Head each : expected) names += (names.empty() ? "" : " or ") + std::string(name_of(each));
  throw Error(directory, " has a ", name_of(head), " head; expected ", names);
}

void require_writes(const CheckpointConfig& checkpoint) {
  require_head(checkpoint.directory, checkpoint.head, {Head::kCausalLm, Head::kSeq2SeqLm});
}

std::unique_ptr<DecodingModel> load_decoding_model(const CheckpointConfig& checkpoint,
                                                   const ComputeOptions& compute) {
  require_writes(checkpoint);
  // Packing starts from float32, which holds the file's weights exactly whatever `dtype` says.
  const bool packed = packs(checkpoint, compute);
  const LoadedModel loaded = load_model(checkpoint, {.dtype = packed ? at::kFloat : dtype_of(compute),
                                                     .device = device_of(compute, checkpoint),
                                                     .stored = packed});
  return decoding_model(loaded, compute);
}

void make_ready(const LoadedModel& loaded, const ComputeOptions& compute) {
  if (compute.cache != "auto")
    throw UnfitField(Field{"cache"}, " ", compute.cache,
                     ": whole passes keep no keys and values; leave it out");
  const auto options = options_for(loaded, compute);
  if (options && lacking_kernels(*loaded.model).empty()) {
    give_back_idle_memory();
    return pack_stacks(*loaded.model, *options);
  }
  check_modules_fit(*loaded.model, compute);
  if (loaded.stored) loaded.stored->load_all();
}

void check_packed_weights(const CheckpointConfig& checkpoint) {
  const LoadedModel loaded = load_model(checkpoint, {.stored = true});
  if (can_pack(*loaded.model)) decoding_model(loaded, {});
  else make_ready(loaded, {});
}

}  // namespace zoo
