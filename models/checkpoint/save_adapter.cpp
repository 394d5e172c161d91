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
  std::int64_t rank = 0;
  for (WeightName& name : expand_layers(table.names, loaded.model->config().num_layers)) {
    if (const auto term = left.extract(name.ours)) {
      if (name.layout == WeightLayout::kTransposed) {
        transposed = true;
        name.layout = WeightLayout::kSame;  // B has the rows of the weight whichever way that lies
      }
      const at::Tensor &magnitude = term.mapped().magnitude, &mask = term.mapped().mask;
      const std::vector<at::Tensor> rows = to_stored_layout(name, term.mapped().b.detach());
      std::vector<at::Tensor> magnitudes, masks;
      if (magnitude.defined()) magnitudes = to_stored_layout(name, magnitude.detach());
      if (mask.defined()) masks = to_stored_layout(name, mask);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string module = in_class(table, name.theirs[i]);
        module.resize(module.rfind('.'));
        at::Tensor a = term.mapped().a.detach(), b = rows[i];
        if (mask.defined()) {
          const at::Tensor own = masks[i].any(0).nonzero().flatten();
          if (own.numel() == 0) continue;  // a name without a term
          a = a.index_select(0, own);
          b = b.index_select(1, own);
        }
        rank = a.size(0);
        tensors.emplace_back(kAdapterPrefix + module + ".lora_A.weight", a);
        tensors.emplace_back(kAdapterPrefix + module + ".lora_B.weight", b);
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
  nlohmann::json config{{"peft_type", "LORA"},
                        {"base_model_name_or_path", parts.base},
                        {"r", rank},
                        {"lora_alpha", parts.alpha},
                        {"use_rslora", parts.rslora},
                        {"use_dora", parts.terms.begin()->second.magnitude.defined()},
                        {"target_modules", targets},
                        {"fan_in_fan_out", transposed},
                        {"inference_mode", true},
                        {"modules_to_save", saved}};
  if (const auto at = parts.base.rfind('@');
      at != parts.base.npos && !fs::exists(parts.base)) {  // on the hub
    config["base_model_name_or_path"] = parts.base.substr(0, at);
    config["revision"] = parts.base.substr(at + 1);
  }
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
