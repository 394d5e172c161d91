#include "models/checkpoint/weights.h"

#include <algorithm>
#include <set>

#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>

#include "data/base/error.h"
#include "models/checkpoint/weight_layout.h"
#include "models/model.h"

namespace zoo {
namespace {

bool is_bias(const std::string& name) { return name.ends_with(".bias"); }

std::string weight_beside(const std::string& bias) {
  return is_bias(bias) ? bias.substr(0, bias.size() - 4) + "weight" : "";
}

// Parameters, and buffers that checkpoints may hold.
std::map<std::string, at::Tensor> weights_of(const Model& model) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& entry : model.named_parameters()) weights.emplace(entry.key(), entry.value());
  for (const auto& entry : model.named_buffers()) weights.emplace(entry.key(), entry.value());
  return weights;
}

template <class Weights> auto* find(Weights& weights, const std::string& name) {
  const auto found = weights.find(name);
  return found == weights.end() ? nullptr : &found->second;
}

// {ending, older ending} of LayerNorm's weights in files that were converted from TensorFlow.
constexpr std::pair<const char*, const char*> kOlderEndings[] = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                                                                 {".LayerNorm.bias", ".LayerNorm.beta"}};

// Matches one model with one set of files.
struct Matcher {
  const WeightTable& table;
  const WeightFiles& files;
  const WeightOptions& options;
  std::map<std::string, at::Tensor> weights;
  std::int64_t layers;
  StoredNames names{table, files};
  std::set<std::string> seen = {};
  LoadReport report = {};

  LoadReport match() {
    std::set<std::string> of_other_heads;
    for (const WeightName& named : expand_layers(table.names, layers)) {
      const WeightName name = names.with_others(named);
      if (const at::Tensor* weight = find(weights, name.ours)) {
        check_shapes(name, *weight);
      } else if (is_of_a_head(table, name.theirs.front())) {
        for (const std::string& theirs : name.theirs) of_other_heads.insert(names.stored(theirs));
      } else if (table.has_all_biases && is_bias(name.ours) &&
                 find(weights, weight_beside(name.ours)) != nullptr) {
        for (const std::string& theirs : name.theirs) check_zero(names.stored(theirs));
      }
    }
    for (const auto& [copy, original] : table.tied) check_tied(names.stored(copy), names.stored(original));
    for (const std::string& name : files.names()) {
      if (seen.count(name) != 0 || is_older_copy(name)) continue;
      const bool unused = of_other_heads.count(name) != 0;
      (unused ? report.unused : is_ignored(name) ? report.ignored : report.unexpected).push_back(name);
    }
    return std::move(report);
  }

  void check_shape(const std::string& key, const std::vector<std::int64_t>& wanted) {
    const TensorEntry& found = files.entry(key);
    if (!at::isFloatingType(found.dtype)) {
      report.mismatched.push_back(key + ": expected floating-point numbers, found " +
                                  safetensors_name(found.dtype));
    } else if (found.shape != wanted) {
      report.mismatched.push_back(
          c10::str(key, ": expected ", at::IntArrayRef(wanted), ", found ", at::IntArrayRef(found.shape)));
    } else {
      report.loaded.push_back(key);
    }
  }

  void check_shapes(const WeightName& name, const at::Tensor& parameter) {
    if (names.joins(name)) {
      const std::string key = names.stored(name.joined);
      seen.insert(key);
      return check_shape(key, {name.experts, parameter.size(0) / name.experts, parameter.size(1)});
    }
    const std::vector<std::int64_t> rows = rows_of_names(name, parameter.size(0));
    for (std::size_t i = 0; i < name.theirs.size(); ++i) {
      const std::string& theirs = name.theirs[i];
      const std::string key = names.stored(theirs);
      seen.insert(key);
      if (!files.contains(key)) {
        if (name.optional) continue;
        const bool fresh = options.may_lack_head && is_of_a_head(table, theirs);
        (fresh ? report.fresh : report.missing).push_back(key);
        continue;
      }
      std::vector<std::int64_t> wanted = parameter.sizes().vec();
      wanted[0] = rows[i];
      if (name.layout == WeightLayout::kTransposed) std::reverse(wanted.begin(), wanted.end());
      check_shape(key, wanted);
    }
  }

  void check_zero(const std::string& key) {
    if (!files.contains(key)) return;
    seen.insert(key);
    if (files.tensor(key).count_nonzero().item<std::int64_t>() == 0) {
      report.ignored.push_back(key);
    } else {
      report.mismatched.push_back(key + ": expected zeros, since config.json says that there are no biases");
    }
  }

  void check_tied(const std::string& copy, const std::string& original) {
    if (!files.contains(copy) || copy == original) return;
    seen.insert(copy);
    if (!files.contains(original)) return;
    if (files.equal(copy, original)) {
      report.tied.push_back(copy);
    } else {
      report.mismatched.push_back(copy + ": differs from " + original +
                                  "; the zoo's model has one weight for both");
    }
  }

  // A weight that the file has under its present name as well.
  bool is_older_copy(const std::string& name) {
    for (const auto& [ending, older] : names.older_endings()) {
      if (!name.ends_with(older)) continue;
      const std::string present = name.substr(0, name.size() - older.size()) + ending;
      if (seen.count(present) == 0 || !files.contains(present)) continue;
      if (files.equal(name, present)) report.ignored.push_back(name);
      else report.mismatched.push_back(name + ": differs from " + present + ", of which it is another name");
      return true;
    }
    return false;
  }

  // A name of the table that ends with a dot is a prefix.
  bool is_ignored(const std::string& name) const {
    for (const std::string& pattern : table.ignored) {
      if (pattern.ends_with('.') && name.starts_with(pattern)) return true;
      for (std::int64_t layer = 0; layer < layers; ++layer)
        if (name == names.stored(number_layer(pattern, layer))) return true;
    }
    return false;
  }
};

}  // namespace

StoredNames::StoredNames(const WeightTable& table, const WeightFiles& files)
    : table_(table), files_(files), older_endings_(table.renamed) {
  older_endings_.insert(older_endings_.end(), std::begin(kOlderEndings), std::end(kOlderEndings));
  const auto has_prefix = [&](const std::string& name) { return name.starts_with(table.prefix); };
  prefixed_ = !table.prefix.empty() && std::ranges::any_of(files.names(), has_prefix);
}

std::string StoredNames::own(const std::string& name) const {
  std::string own = prefixed_ ? with_prefix(table_, name) : name;
  if (files_.contains(own)) return own;
  for (const auto& [ending, older] : older_endings_) {
    if (!own.ends_with(ending)) continue;
    const std::string other = own.substr(0, own.size() - ending.size()) + older;
    if (files_.contains(other)) return other;
  }
  return own;
}

std::string StoredNames::stored(const std::string& name) const {
  const std::string stored = own(name);
  if (files_.contains(stored)) return stored;
  for (const auto& [copy, original] : table_.tied) {
    if (original != name) continue;
    std::string other = this->stored(copy);
    if (files_.contains(other)) return other;
  }
  return stored;
}

bool StoredNames::joins(const WeightName& name) const {
  return !name.joined.empty() && files_.contains(stored(name.joined));
}

WeightName StoredNames::with_others(WeightName name) const {
  const auto has = [&](const std::string& one) { return files_.contains(stored(one)); };
  if (std::ranges::none_of(name.theirs, has) && std::ranges::any_of(name.others, has))
    name.theirs = name.others;
  return name;
}

WeightName StoredNames::stored(WeightName name) const {
  name = with_others(std::move(name));
  if (joins(name)) name.theirs = {name.joined};
  for (std::string& theirs : name.theirs) theirs = stored(theirs);
  return name;
}

LoadReport match_weights(const Model& model, const WeightTable& table, const WeightFiles& files,
                         const WeightOptions& options) {
  return Matcher{table, files, options, weights_of(model), model.config().num_layers}.match();
}

LoadReport load_weights(Model& model, const WeightTable& table,
                        const std::shared_ptr<const WeightFiles>& files, const WeightOptions& options) {
  LoadReport report = match_weights(model, table, *files, options);
  if (!report.good()) throw Error("the weights do not fit the model: ", report.faults());
  // Training reads all of the files anyway; for inference, which only maps them, a check would be slow.
  if (options.trainable) files->verify();
  const StoredNames names(table, *files);
  std::map<std::string, at::Tensor> weights = weights_of(model);
  const auto parameters = model.named_parameters();
  const at::NoGradGuard no_grad;
  for (WeightName& name : expand_layers(table.names, model.config().num_layers)) {
    at::Tensor* weight = find(weights, name.ours);
    // If the files lack a tensor of a head's part, the complete part is newly initialised.
    if (weight == nullptr) continue;
    const bool joined = names.joins(name);
    StoredWeight stored{names.stored(std::move(name)), files, options.dtype};
    if (!files->contains(stored.name.theirs.front())) continue;
    if (options.stored != nullptr && weight->dim() == 2 && !joined && parameters.contains(stored.name.ours)) {
      options.stored->add(*weight, std::move(stored));
    } else {
      const at::Tensor read = stored.read();
      weight->set_data(options.trainable ? read.clone(at::MemoryFormat::Contiguous) : read);
    }
  }
  for (auto& entry : model.named_buffers()) entry.value().set_data(entry.value().to(options.dtype));
  return report;
}

std::map<std::string, at::Tensor> weights_in(const Model& model, const WeightTable& table) {
  std::map<std::string, at::Tensor> all = weights_of(model), found;
  for (const WeightName& name : expand_layers(table.names, model.config().num_layers))
    if (const auto weight = all.find(name.ours); weight != all.end()) found.insert(*weight);
  return found;
}

NamedTensors export_tensor(const WeightName& name, const at::Tensor& tensor, const WeightTable& table) {
  NamedTensors tensors;
  std::vector<at::Tensor> parts = to_stored_layout(name, tensor);
  for (std::size_t i = 0; i < parts.size(); ++i)
    tensors.emplace_back(with_prefix(table, name.theirs[i]), std::move(parts[i]));
  return tensors;
}

NamedTensors export_weights(const Model& model, const WeightTable& table,
                            std::map<std::string, at::Tensor> replaced) {
  require_weights(model);
  std::map<std::string, at::Tensor> weights = std::move(replaced);
  weights.merge(weights_of(model));
  NamedTensors tensors;
  for (const WeightName& name : expand_layers(table.names, model.config().num_layers)) {
    at::Tensor weight;
    const at::Tensor* beside = find(weights, weight_beside(name.ours));
    if (const at::Tensor* found = find(weights, name.ours)) {
      weight = found->detach();
    } else if (table.has_all_biases && is_bias(name.ours) && beside != nullptr) {
      weight = at::zeros({beside->size(0)}, beside->options().requires_grad(false));
    } else {
      continue;
    }
    for (auto& entry : export_tensor(name, weight, table)) tensors.push_back(std::move(entry));
  }
  for (const auto& [copy, original] : table.writes_tied ? table.tied : decltype(table.tied)()) {
    const auto found =
        std::ranges::find(tensors, with_prefix(table, original), &NamedTensors::value_type::first);
    if (found != tensors.end()) tensors.emplace_back(with_prefix(table, copy), found->second.clone());
  }
  return tensors;
}

}  // namespace zoo
