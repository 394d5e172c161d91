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
class Matcher {
 public:
  Matcher(const Model& model, const WeightTable& table, const WeightFiles& files,
          const WeightOptions& options)
      : table_(table),
        files_(files),
        options_(options),
        weights_(weights_of(model)),
        layers_(model.config().num_layers),
        names_(table, files) {}

  std::string stored(const std::string& name) const { return names_.stored(name); }
  const StoredNames& names() const { return names_; }

  LoadReport match() {
    std::set<std::string> of_other_heads;
    for (const WeightName& named : expand_layers(table_.names, layers_)) {
      const WeightName name = names_.with_others(named);
      if (const at::Tensor* weight = find(weights_, name.ours)) {
        check_shapes(name, *weight);
      } else if (is_of_a_head(table_, name.theirs.front())) {
        for (const std::string& theirs : name.theirs) of_other_heads.insert(stored(theirs));
      } else if (table_.has_all_biases && is_bias(name.ours) &&
                 find(weights_, weight_beside(name.ours)) != nullptr) {
        for (const std::string& theirs : name.theirs) check_zero(stored(theirs));
      }
    }
    for (const auto& [copy, original] : table_.tied) check_tied(stored(copy), stored(original));
    for (const std::string& name : files_.names()) {
      if (seen_.count(name) != 0 || is_older_copy(name)) continue;
      const bool unused = of_other_heads.count(name) != 0;
      (unused ? report_.unused : is_ignored(name) ? report_.ignored : report_.unexpected).push_back(name);
    }
    return std::move(report_);
  }

 private:
  void check_shape(const std::string& key, const std::vector<std::int64_t>& wanted) {
    const TensorEntry& found = files_.entry(key);
    if (!at::isFloatingType(found.dtype)) {
      report_.mismatched.push_back(key + ": expected floating-point numbers, found " +
                                   safetensors_name(found.dtype));
    } else if (found.shape != wanted) {
      report_.mismatched.push_back(
          c10::str(key, ": expected ", at::IntArrayRef(wanted), ", found ", at::IntArrayRef(found.shape)));
    } else {
      report_.loaded.push_back(key);
    }
  }

  void check_shapes(const WeightName& name, const at::Tensor& parameter) {
    if (names_.joins(name)) {
      const std::string key = stored(name.joined);
      seen_.insert(key);
      return check_shape(key, {name.experts, parameter.size(0) / name.experts, parameter.size(1)});
    }
    const std::vector<std::int64_t> rows = rows_of_names(name, parameter.size(0));
    for (std::size_t i = 0; i < name.theirs.size(); ++i) {
      const std::string& theirs = name.theirs[i];
      const std::string key = stored(theirs);
      seen_.insert(key);
      if (!files_.contains(key)) {
        if (name.optional) continue;
        const bool fresh = options_.may_lack_head && is_of_a_head(table_, theirs);
        (fresh ? report_.fresh : report_.missing).push_back(key);
        continue;
      }
      std::vector<std::int64_t> wanted = parameter.sizes().vec();
      wanted[0] = rows[i];
      if (name.layout == WeightLayout::kTransposed) std::reverse(wanted.begin(), wanted.end());
      check_shape(key, wanted);
    }
  }

  void check_zero(const std::string& key) {
    if (!files_.contains(key)) return;
    seen_.insert(key);
    if (files_.tensor(key).count_nonzero().item<std::int64_t>() == 0) {
      report_.ignored.push_back(key);
    } else {
      report_.mismatched.push_back(key + ": expected zeros, since config.json says that there are no biases");
    }
  }

  void check_tied(const std::string& copy, const std::string& original) {
    if (!files_.contains(copy) || copy == original) return;
    seen_.insert(copy);
    if (!files_.contains(original)) return;
    if (files_.equal(copy, original)) {
      report_.tied.push_back(copy);
    } else {
      report_.mismatched.push_back(copy + ": differs from " + original +
                                   "; the zoo's model has one weight for both");
    }
  }

  // A weight that the file has under its present name as well.
  bool is_older_copy(const std::string& name) {
    for (const auto& [ending, older] : names_.older_endings()) {
      if (!name.ends_with(older)) continue;
      const std::string present = name.substr(0, name.size() - older.size()) + ending;
      if (seen_.count(present) == 0 || !files_.contains(present)) continue;
      if (files_.equal(name, present)) report_.ignored.push_back(name);
      else report_.mismatched.push_back(name + ": differs from " + present + ", of which it is another name");
      return true;
    }
    return false;
  }

  // A name of the table that ends with a dot is a prefix.
  bool is_ignored(const std::string& name) const {
    for (const std::string& pattern : table_.ignored) {
      if (pattern.ends_with('.') && name.starts_with(pattern)) return true;
      for (std::int64_t layer = 0; layer < layers_; ++layer)
        if (name == stored(number_layer(pattern, layer))) return true;
    }
    return false;
  }

  const WeightTable& table_;
  const WeightFiles& files_;
  WeightOptions options_;
  std::map<std::string, at::Tensor> weights_;
  std::int64_t layers_;
  StoredNames names_;
  std::set<std::string> seen_;
  LoadReport report_;
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
  return Matcher(model, table, files, options).match();
}

LoadReport load_weights(Model& model, const WeightTable& table,
                        const std::shared_ptr<const WeightFiles>& files, const WeightOptions& options) {
  Matcher matcher(model, table, *files, options);
  LoadReport report = matcher.match();
  if (!report.good()) throw Error("the weights do not fit the model: ", report.faults());
  // Training reads all of the files anyway; for inference, which only maps them, a check would be slow.
  if (options.trainable) files->verify();
  std::map<std::string, at::Tensor> weights = weights_of(model);
  const auto parameters = model.named_parameters();
  const at::NoGradGuard no_grad;
  for (WeightName& name : expand_layers(table.names, model.config().num_layers)) {
    at::Tensor* weight = find(weights, name.ours);
    // If the files lack a tensor of a head's part, the complete part is newly initialised.
    if (weight == nullptr) continue;
    const bool joined = matcher.names().joins(name);
    StoredWeight stored{matcher.names().stored(std::move(name)), files, options.dtype};
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
    const auto is_it = [name = with_prefix(table, original)](const auto& entry) {
      return entry.first == name;
    };
    const auto found = std::ranges::find_if(tensors, is_it);
    if (found != tensors.end()) tensors.emplace_back(with_prefix(table, copy), found->second.clone());
  }
  return tensors;
}

}  // namespace zoo
