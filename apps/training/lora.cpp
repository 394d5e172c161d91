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

// Ends of the names of a projection's tensors.
constexpr const char *kA = "_a", *kB = "_b", *kMagnitude = "_magnitude", *kMask = "_mask";

std::string key_of(std::string name) {  // names in a module must not contain dots
  std::ranges::replace(name, '.', '_');
  return name;
}

LowRankTerm new_term(const at::Tensor& weight, const LoraAdapters::Options& options,
                     at::Generator& generator) {
  // He et al. (2015) with a = sqrt(5), as for a projection; drawn on the CPU for equal values on all devices.
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size(1)));
  return {at::empty({options.rank, weight.size(1)}).uniform_(-bound, bound, generator),
          at::zeros({weight.size(0), options.rank}), options.scale()};
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
  if (options.terms.empty()) require_projections(module, options);
  auto adapters = std::make_shared<LoraAdapters>();
  adapters->options_ = options;
  for (auto& entry : module.named_parameters())
    entry.value().set_requires_grad(fits_any(options.trains, entry.key()));
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  std::map<std::string, LowRankTerm> left = options.terms;
  for (const auto& entry : module.named_modules("", /*include_self=*/false)) {
    const auto projection = std::dynamic_pointer_cast<LinearImpl>(entry.value());
    if (!projection) continue;
    const std::string weight = entry.key() + ".weight";
    if (const auto term = left.extract(weight)) adapters->adapt(entry.key(), projection, term.mapped());
    else if (options.terms.empty() && fits_any(options.targets, entry.key()) &&
             !fits_any(options.trains, weight))
      adapters->adapt(entry.key(), projection, new_term(projection->weight, options, generator));
  }
  if (!left.empty()) throw Error("the model has no projection ", left.begin()->first, " for the adapter");
  adapters->options_.terms.clear();
  module.register_module("lora", adapters);
  return adapters;
}

void LoraAdapters::adapt(const std::string& name, const std::shared_ptr<LinearImpl>& projection,
                         const LowRankTerm& term) {
  const at::Tensor& weight = projection->weight;
  if (term.a.size(1) != weight.size(1) || term.b.size(0) != weight.size(0) ||
      term.a.size(0) != term.b.size(1))
    throw Error("the adapter has A ", term.a.sizes(), " and B ", term.b.sizes(), " for ", name, ".weight ",
                weight.sizes());
  const std::string key = key_of(name);
  const auto on_device = [&](const at::Tensor& tensor) { return tensor.to(weight.device()); };
  LowRankTerm& own = projection->low_rank.emplace();
  own = {register_parameter(key + kA, on_device(term.a)), register_parameter(key + kB, on_device(term.b)),
         term.scale};
  if (term.mask.defined()) own.mask = register_buffer(key + kMask, on_device(term.mask));
  if (options_.dora) {
    const at::NoGradGuard no_grad;
    const bool begins = !term.magnitude.defined();  // as the norms of the rows
    own.magnitude = register_parameter(
        key + kMagnitude,
        begins ? at::linalg_vector_norm(projection->adapted_weight(), 2, 1) : on_device(term.magnitude));
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
  for (const auto& entry : named_buffers()) state.emplace_back(entry.key(), entry.value());
  return state;
}

std::map<std::string, LowRankTerm> LoraAdapters::terms_in(const SafetensorsFile& state,
                                                          const torch::nn::Module& module,
                                                          const Options& options) {
  std::map<std::string, LowRankTerm> terms;
  std::size_t read = 0;
  const auto tensor = [&](const std::string& name) {
    ++read;
    return state.tensor(name).clone();
  };
  for (const auto& entry : module.named_modules("", /*include_self=*/false)) {
    const std::string key = key_of(entry.key());
    if (entry.value()->as<LinearImpl>() == nullptr || !state.contains(key + kA)) continue;
    LowRankTerm& term = terms[entry.key() + ".weight"];
    term = {tensor(key + kA), tensor(key + kB), options.scale()};
    if (state.contains(key + kMask)) term.mask = tensor(key + kMask);
    if (options.dora) term.magnitude = tensor(key + kMagnitude);
  }
  if (terms.empty() || read != state.names().size())
    throw Error(state.path(), ": has tensors of other projections than the model's");
  return terms;
}

}  // namespace zoo
