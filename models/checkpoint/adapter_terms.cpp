// An adapter's terms by our names of the weights (peft_adapter.h).
#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "data/base/error.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/checkpoint/weight_layout.h"

namespace zoo {

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

}  // namespace zoo
