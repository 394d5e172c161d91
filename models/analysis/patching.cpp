#include "models/analysis/patching.h"

#include <numeric>

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
                         const SweepOptions& given) {
  check_same_length("input_ids", clean.input_ids, corrupted.input_ids);
  check_same_length("decoder_input_ids", clean.decoder_input_ids, corrupted.decoder_input_ids);
  SweepOptions options = given;
  const ModelInputs start = answering_inputs(model, corrupted, options.target);
  const Run source = run(model, answering_inputs(model, clean, options.target));
  const Site first{.stack = options.stack, .part = options.part, .head = options.heads ? 0 : -1};
  const std::int64_t length = activation_at(model, source, first).size(1);
  const auto places = options.positions.empty() ? numbers_to(length) : options.positions;
  const auto columns =
      options.heads ? head_stack(model).config().num_heads : static_cast<std::int64_t>(places.size());
  const auto cell = [&](const Site& site, std::int64_t column) {
    if (options.heads) return patches(model, source, {site}, options.positions);
    return patches(model, source, {site}, {places[static_cast<std::size_t>(column)]});
  };
  return {.clean = measure(model, source.output, options.target),
          .corrupted = measure(model, run(model, start).output, options.target),
          .patched = sweep(model, start, options, columns, cell)};
}

}  // namespace zoo::analysis
