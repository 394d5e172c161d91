// An adapter's terms by our names of the weights (peft_adapter.h), from its file and back.
#include <algorithm>
#include <set>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/checkpoint/weight_layout.h"
#include "models/checkpoint/weights.h"
#include "models/model.h"

namespace zoo {

namespace fs = std::filesystem;

std::map<std::string, LowRankTerm> PeftAdapter::terms(const WeightFiles& files, const WeightTable& table,
                                                      std::int64_t num_layers) const {
  const auto refuse = [&](const std::string& name, const auto&... words) {
    throw Error(weights_file_, ": ", name, " ", words..., "; use the merged model instead");
  };
  const StoredNames names(table, files);
  std::map<std::string, const Module*> left;
  for (const auto& [name, module] : modules_) {
    if (module.embedding) refuse(name, "is a term of an embedding");
    left[in_table(table, name)] = &module;
  }
  std::map<std::string, LowRankTerm> terms;
  for (WeightName& line : expand_layers(table.names, num_layers)) {
    if (!line.theirs[0].ends_with(".weight")) continue;
    std::vector<const Module*> found;
    const Module* first = nullptr;
    std::int64_t rank = 0;
    for (const std::string& name : line.theirs) {
      const auto given = left.extract(name.substr(0, name.rfind('.')));
      found.push_back(given ? given.mapped() : nullptr);
      if (!given) continue;
      if (first == nullptr) first = found.back();
      rank += found.back()->a.size(0);
    }
    if (first == nullptr) continue;
    const bool transposed = line.layout == WeightLayout::kTransposed;
    if (transposed) line.layout = WeightLayout::kSame;  // B has the weight's rows whichever way that lies
    std::vector<at::Tensor> a, b, masks, magnitudes;
    std::int64_t place = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<std::int64_t> shape = files.entry(names.stored(line.theirs[i])).shape;
      const std::int64_t rows = shape[transposed ? 1 : 0], columns = shape[transposed ? 0 : 1];
      for (auto* parts : {&b, &masks}) parts->push_back(at::zeros({rows, rank}));
      magnitudes.push_back(at::zeros({rows}));
      if (found[i] == nullptr) continue;
      const Module& module = *found[i];
      if (module.b.size(0) != rows || module.a.size(1) != columns ||
          (module.magnitude.defined() && module.magnitude.numel() != rows))
        refuse(line.theirs[i], "is a term of ", module.b.size(0), " x ", module.a.size(1),
               " numbers, the model's weight has ", rows, " x ", columns);
      const std::int64_t end = place + module.a.size(0);
      b.back().slice(1, place, end).copy_(module.b * (module.scale / first->scale));
      masks.back().slice(1, place, end).fill_(1);
      if (module.magnitude.defined()) magnitudes.back().copy_(module.magnitude.flatten());
      a.push_back(module.a);
      place = end;
    }
    LowRankTerm term{at::cat(a), from_stored_layout(line, b), first->scale};
    if (found.size() > 1) term.mask = from_stored_layout(line, masks);
    if (first->magnitude.defined()) term.magnitude = from_stored_layout(line, magnitudes);
    terms.emplace(line.ours, std::move(term));
  }
  if (!left.empty()) refuse(left.begin()->first, "is no module of the model with a term of its own");
  return terms;
}

std::vector<std::string> PeftAdapter::whole(const WeightTable& table, std::int64_t num_layers) const {
  std::vector<std::string> ours;
  std::map<std::string, std::string> left;  // names in the file, by the table's
  for (const auto& [name, full] : whole_) {
    const auto is_it = [&name = name](const std::string& end) {
      return ("." + name).find("." + end + ".") != std::string::npos;
    };
    if (std::ranges::none_of(saved_, is_it))
      throw Error(weights_file_, ": ", full, " is of none of the modules_to_save in ", kAdapterConfig,
                  "; use the merged model instead");
    left[in_table(table, name)] = full;
  }
  const std::map<std::string, std::string> all = left;
  for (const WeightName& line : expand_layers(table.names, num_layers)) {  // two heads may have one name
    if (!std::ranges::all_of(line.theirs, [&](const std::string& name) { return all.contains(name); }))
      continue;
    ours.push_back(line.ours);
    for (const std::string& name : line.theirs) left.erase(name);
  }
  if (!left.empty())
    throw Error(weights_file_, ": ", left.begin()->second,
                " is only a part of a parameter here; use the merged model instead");
  return ours;
}

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
