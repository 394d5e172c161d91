#include "apps/training/lora.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <fnmatch.h>

#include "data/base/field_error.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

bool fits_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return fits(p, name); });
}

// The module's projections, except those that are trained themselves, such as a new head. Throws for a
// pattern that none fits: what it was to adapt would silently not learn.
void require_projections(const torch::nn::Module& module, const LoraAdapters::Options& options) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_modules("", /*include_self=*/false))
    if (entry.value()->as<LinearImpl>() != nullptr && !fits_any(options.trains, entry.key() + ".weight"))
      names.push_back(entry.key());
  constexpr std::size_t kMostNames = 8;
  for (const std::string& pattern : options.targets) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return fits(pattern, name); })) continue;
    const std::span<const std::string> some(names.data(), std::min(names.size(), kMostNames));
    throw FieldError(Field{"lora_targets"}, ": no projection of the model fits '", pattern,
                     "'; their names are ", joined(some), names.size() > kMostNames ? ", …" : "");
  }
}

}  // namespace

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::int64_t freeze(torch::nn::Module& module, const std::vector<std::string>& patterns) {
  std::int64_t count = 0;
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (auto& entry : module.named_parameters()) {
      if (!fits(pattern, entry.key())) continue;
      found = true;
      if (!entry.value().requires_grad()) continue;
      entry.value().set_requires_grad(false);
      count += entry.value().numel();
    }
    if (!found) {
      const auto first = module.named_parameters();
      throw Error("no parameter of the model fits '", pattern, "'; one of them is called ",
                  first.is_empty() ? "nothing" : first.front().key());
    }
  }
  return count;
}

double LoraAdapters::Options::scale() const {
  const auto count = static_cast<double>(rank);
  return alpha / (rslora ? std::sqrt(count) : count);
}

std::shared_ptr<LoraAdapters> LoraAdapters::add_to(torch::nn::Module& module, const Options& options) {
  require_in(at_least(1), "lora_rank", static_cast<double>(options.rank));
  if (module.named_children().contains("lora")) throw Error("the model has adapters already");
  require_projections(module, options);
  auto adapters = std::make_shared<LoraAdapters>();
  adapters->options_ = options;
  for (auto& entry : module.named_parameters())
    entry.value().set_requires_grad(fits_any(options.trains, entry.key()));
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  for (const auto& entry : module.named_modules("", /*include_self=*/false)) {
    const auto projection = std::dynamic_pointer_cast<LinearImpl>(entry.value());
    if (projection && fits_any(options.targets, entry.key()) &&
        !fits_any(options.trains, entry.key() + ".weight"))
      adapters->adapt(entry.key(), projection, generator);
  }
  module.register_module("lora", adapters);
  return adapters;
}

void LoraAdapters::adapt(const std::string& name, const std::shared_ptr<LinearImpl>& projection,
                         at::Generator& generator) {
  const std::int64_t rank = options_.rank;
  const at::Tensor& weight = projection->weight;
  // He et al. (2015) with a = sqrt(5), as for a projection; drawn on the CPU for equal values on all devices.
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size(1)));
  const at::Tensor a =
      at::empty({rank, weight.size(1)}).uniform_(-bound, bound, generator).to(weight.device());
  const at::Tensor b = at::zeros({weight.size(0), rank}, a.options());
  std::string key = name;  // names in a module must not contain dots
  std::replace(key.begin(), key.end(), '.', '_');
  projection->low_rank = {.a = register_parameter(key + "_a", a),
                          .b = register_parameter(key + "_b", b),
                          .scale = options_.scale()};
  if (options_.dora) {
    const at::NoGradGuard no_grad;
    projection->low_rank->magnitude =
        register_parameter(key + "_magnitude", at::linalg_vector_norm(projection->adapted_weight(), 2, 1));
  }
  adapted_.emplace(name, projection);
}

std::map<std::string, at::Tensor> LoraAdapters::merged_weights() const {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> weights;
  for (const auto& [name, projection] : adapted_)
    weights.emplace(name + ".weight", projection->adapted_weight());
  return weights;
}

std::map<std::string, LowRankTerm> LoraAdapters::terms() const {
  std::map<std::string, LowRankTerm> terms;
  for (const auto& [name, projection] : adapted_) terms.emplace(name + ".weight", *projection->low_rank);
  return terms;
}

NamedTensors LoraAdapters::state() const {
  NamedTensors state;
  for (const auto& entry : named_parameters()) state.emplace_back(entry.key(), entry.value().detach());
  return state;
}

void LoraAdapters::load_state(const SafetensorsFile& file) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : state()) {
    if (tensor.sizes() != at::IntArrayRef(file.entry(name).shape))
      throw Error(file.path(), ": tensor '", name, "' has another shape than the adapter");
    tensor.copy_(file.tensor(name));
  }
}

}  // namespace zoo
