#include "models/inference/save_packed.h"

#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "data/base/json.h"
#include "models/inference/calibration.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"
#include "models/layers/embeddings.h"

namespace zoo {
namespace {

using inference::PackedPart;
using kernels::WeightType;

at::Tensor view_of(const void* data, std::vector<std::int64_t> shape, at::ScalarType dtype) {
  return at::from_blob(const_cast<void*>(data), shape, at::TensorOptions(dtype));
}

void add_packed(const PackedPart& part, const std::string& name, NamedTensors& tensors) {
  const auto [dtype, shape] = inference::panel_layout(part.weight);
  tensors.emplace_back(name + part.ending, view_of(part.weight.panels, shape, dtype));
  if (part.weight.scales == nullptr) return;
  const auto panels = static_cast<std::int64_t>(kernels::panel_count(part.weight.outputs)),
             outputs = static_cast<std::int64_t>(kernels::kPanelOutputs);
  tensors.emplace_back(name + part.ending + ".scales",
                       view_of(part.weight.scales, {panels * outputs}, at::kFloat));
}

// First the packed weights, of multiples of 64 bytes, so that each begins at one, then the others.
NamedTensors tensors_of(const LoadedModel& loaded, const WeightTable& table,
                        const std::vector<PackedPart>& made) {
  const auto weights = weights_in(*loaded.model, table);
  std::map<const c10::TensorImpl*, std::string> names;
  for (const auto& [name, weight] : weights) names[weight.unsafeGetTensorImpl()] = name;
  auto beside = names;
  NamedTensors tensors;
  for (const PackedPart& part : made) {
    const c10::TensorImpl* weight = part.parameter.unsafeGetTensorImpl();
    add_packed(part, names.at(weight), tensors);
    beside.erase(weight);
  }
  // The token embedding may also be the output projection.
  const ModelParts parts = loaded.model->parts();
  for (const auto& embeddings : {parts.embeddings, parts.decoder_embeddings}) {
    if (!embeddings) continue;
    const c10::TensorImpl* table_of_tokens = embeddings->token->weight.unsafeGetTensorImpl();
    beside[table_of_tokens] = names.at(table_of_tokens);
  }
  for (const auto& [name, weight] : weights)
    if (beside.contains(weight.unsafeGetTensorImpl()))
      tensors.emplace_back(name, weight.dim() == 2 ? loaded.stored->rows_of(weight).all() : weight);
  return tensors;
}

}  // namespace

const char* name_of(kernels::WeightType type) {
  constexpr const char* kNames[] = {"float32", "bfloat16", "int8", "int4", "gguf"};
  return kNames[static_cast<int>(type)];
}

void save_packed(const CheckpointConfig& checkpoint, kernels::WeightType type, const ModelPath& source,
                 const std::filesystem::path& directory, const CalibrationText& text) {
  // Weights merged with an adapter's are packed as computed, not rounded to the files' type first.
  const at::ScalarType dtype =
      checkpoint.directory.adapter.empty() ? checkpoint.files().common_type() : at::kFloat;
  const LoadedModel loaded = load_model(checkpoint, {.dtype = dtype, .stored = true});
  const bool decodes = can_pack(*loaded.model);
  const std::string lacking = lacking_kernels(*loaded.model);
  if (!lacking.empty())
    throw FieldError(checkpoint.directory, ": ", lacking, "; use ", Field{"format"}, " huggingface");
  std::vector<PackedPart> made;
  inference::PackOptions options{.weights = type, .stored = loaded.stored, .made = &made};
  std::optional<inference::Calibration> calibration;
  if (!text.samples.empty()) {
    const WeightType exact = dtype == at::kFloat ? WeightType::kFloat32 : WeightType::kBfloat16;
    calibration.emplace(loaded, exact, text.samples, text.progress);
    options.feedback = [&](const at::Tensor& parameter) { return calibration->feedback_of(parameter); };
  }
  std::unique_ptr<DecodingModel> decoder;
  if (decodes) {
    decoder = pack(*loaded.model, options);
  } else {
    pack_stacks(*loaded.model, options);
  }
  nlohmann::json json = *checkpoint.json;
  // Some keys are completed by the names of the tensors, which the packed file lacks.
  if (checkpoint.family->complete_config != nullptr)
    json.update(checkpoint.family->write_config(checkpoint.config));
  write_json(directory / "config.json", json);
  const WeightTable table = checkpoint.family->weight_table(checkpoint.config);
  std::map<std::string, std::string> metadata{{"format", PackedParts::kFormat},
                                              {"layout", PackedParts::kLayout},
                                              {"weights", name_of(type)},
                                              {"panel_outputs", std::to_string(kernels::kPanelOutputs)},
                                              {"group_inputs", std::to_string(kernels::kGroup)},
                                              {"source", source.string()},
                                              {"calibration", text.name}};
  if (!source.adapter.empty()) metadata["adapter"] = source.adapter.string();
  write_safetensors(directory / PackedParts::kFile, tensors_of(loaded, table, made), metadata);
}

}  // namespace zoo
