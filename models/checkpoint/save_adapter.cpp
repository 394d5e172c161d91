#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/checkpoint/weight_layout.h"
#include "models/checkpoint/weights.h"
#include "models/model.h"

namespace zoo {

namespace fs = std::filesystem;

void save_adapter(const LoadedModel& loaded, const AdapterParts& parts, const fs::path& directory) {
  const WeightTable table = weight_table_of(*loaded.family, loaded.model->config(), loaded.head);
  const auto parameters = loaded.model->named_parameters();
  NamedTensors tensors;
  std::set<std::string> targets, saved;
  std::map<std::string, LowRankTerm> left = parts.terms;
  bool transposed = false;
  for (WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    if (const auto term = left.extract(name.ours)) {
      if (name.layout == WeightLayout::kTransposed) {
        transposed = true;
        name.layout = WeightLayout::kSame;  // B has the rows of the weight whichever way that lies
      }
      const at::Tensor& magnitude = term.mapped().magnitude;
      const std::vector<at::Tensor> rows = to_stored_layout(name, term.mapped().b.detach());
      std::vector<at::Tensor> magnitudes;
      if (magnitude.defined()) magnitudes = to_stored_layout(name, magnitude.detach());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string module = in_class(table, name.theirs[i]);
        module.resize(module.rfind('.'));
        tensors.emplace_back(kAdapterPrefix + module + ".lora_A.weight", term.mapped().a.detach());
        tensors.emplace_back(kAdapterPrefix + module + ".lora_B.weight", rows[i]);
        if (magnitude.defined())
          tensors.emplace_back(kAdapterPrefix + module + ".lora_magnitude_vector", magnitudes[i]);
        targets.insert(std::move(module));
      }
    } else if (const at::Tensor* whole = parameters.find(name.ours);
               whole != nullptr && std::ranges::count(parts.whole, name.ours) > 0) {
      for (const auto& [stored, tensor] : export_tensor(name, whole->detach(), table)) {
        const std::string theirs = in_class(table, in_table(table, stored));
        // PEFT saves a head as one module.
        saved.insert(theirs.substr(0, is_of_a_head(table, stored) ? theirs.find('.') : theirs.rfind('.')));
        tensors.emplace_back(kAdapterPrefix + theirs, tensor);
      }
    }
  }
  if (!left.empty())
    throw Error(directory, ": a ", loaded.family->model_type, "'s checkpoint has no name for an adapter of ",
                left.begin()->first);
  const LowRankTerm& term = parts.terms.begin()->second;
  nlohmann::json config{{"peft_type", "LORA"},        {"base_model_name_or_path", parts.base},
                        {"r", term.a.size(0)},        {"lora_alpha", parts.alpha},
                        {"use_rslora", parts.rslora}, {"use_dora", term.magnitude.defined()},
                        {"target_modules", targets},  {"fan_in_fan_out", transposed},
                        {"inference_mode", true},     {"modules_to_save", saved}};
  for (const auto& [name, head] : kAdapterTasks)
    if (loaded.head == head) config["task_type"] = name;
  fs::create_directories(directory);
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  if (const auto& labels = loaded.model->config().label_names; !labels.empty())
    metadata[kAdapterLabels] = nlohmann::json(labels).dump();
  write_safetensors(directory / kAdapterWeights, tensors, metadata);
  write_json(directory / kAdapterConfig, config);
}

}  // namespace zoo
