#include "models/analysis/patching.h"

#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

void check_same_length(const char* name, const at::Tensor& clean, const at::Tensor& corrupted) {
  if (!clean.defined() && !corrupted.defined()) return;
  TORCH_CHECK(
      clean.defined() && corrupted.defined() && clean.sizes() == corrupted.sizes() && clean.size(0) == 1,
      "patching needs two inputs of one sequence and one length, got ", name, " ",
      clean.defined() ? clean.sizes() : at::IntArrayRef(), " and ",
      corrupted.defined() ? corrupted.sizes() : at::IntArrayRef());
}

std::vector<std::int64_t> numbers_to(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

std::vector<Intervention> patches(const Model& model, const Run& clean, const std::vector<Site>& sites,
                                  const std::vector<std::int64_t>& positions) {
  std::vector<Intervention> changes;
  for (const Site& site : sites) {
    at::Tensor value = activation_at(model, clean, site);
    for (const std::int64_t position : positions) {
      TORCH_CHECK(position >= 0 && position < value.size(1), "position ", position,
                  " is not in a sequence of ", value.size(1));
    }
    if (!positions.empty()) value = value.index_select(1, at::tensor(positions).to(value.device()));
    changes.push_back({.site = site, .value = value, .positions = positions});
  }
  return changes;
}

PatchEffects patch_sweep(Model& model, const ModelInputs& clean, const ModelInputs& corrupted,
                         const PatchOptions& options) {
  check_same_length("input_ids", clean.input_ids, corrupted.input_ids);
  check_same_length("decoder_input_ids", clean.decoder_input_ids, corrupted.decoder_input_ids);
  const Run source = run(model, clean), start = run(model, corrupted);
  const bool of_head = options.stack == head_stack(model).config().shape;
  const auto layers = static_cast<std::int64_t>(
      (of_head ? start.output.activations : start.output.encoder_activations).size());
  Site site{.stack = options.stack, .part = options.part, .head = options.heads ? 0 : -1};
  const at::Tensor first = activation_at(model, source, site);  // checks the site
  const auto places = options.positions.empty() ? numbers_to(first.size(1)) : options.positions;
  const std::int64_t columns =
      options.heads ? head_stack(model).config().num_heads : static_cast<std::int64_t>(places.size());
  PatchEffects effects{.clean = measure(source.output, options.target),
                       .corrupted = measure(start.output, options.target),
                       .patched = at::empty({layers, columns}, at::kDouble)};
  ModelInputs inputs = corrupted;
  for (std::int64_t cell = 0; cell < layers * columns; ++cell) {
    const std::int64_t column = cell % columns;
    site.layer = cell / columns;
    if (options.heads) site.head = column;
    const std::vector<std::int64_t> one{options.heads ? 0 : places[static_cast<std::size_t>(column)]};
    inputs.interventions = patches(model, source, {site}, options.heads ? options.positions : one);
    effects.patched[site.layer][column] = measure(model.forward(inputs), options.target);
    if (options.progress) options.progress(cell + 1, layers * columns);
  }
  return effects;
}

}  // namespace zoo::analysis
