#include <array>

#include "data/base/error.h"
#include "models/inference/packed_stack.h"

namespace zoo::inference {

std::shared_ptr<const PackedAdapter> PackedStack::adapter(
    const std::map<std::string, LowRankTerm>& terms) const {
  constexpr std::array<std::pair<const char*, PackedLinear Layer::*>, 4> kWeights{
      {{".attention.qkv.weight", &Layer::qkv},
       {".attention.out.weight", &Layer::out},
       {".feed_forward.up.weight", &Layer::up},
       {".feed_forward.down.weight", &Layer::down}}};
  auto adapter = std::make_shared<PackedAdapter>();
  std::map<std::string, LowRankTerm> left = terms;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const auto& [ending, weight] : kWeights) {
      const auto found = left.extract("stack.blocks." + std::to_string(i) + ending);
      if (!found) continue;
      const LowRankTerm& term = found.mapped();
      if (term.magnitude.defined())
        throw Error("an adapter of ", found.key(),
                    " has magnitudes of DoRA, which cannot be shared; use the merged model instead");
      const auto packed = [](const at::Tensor& matrix) {
        return PackedLinear(matrix, WeightRows(matrix), at::Tensor(), PackOptions());
      };
      adapter->terms.emplace(&(layers_[i].*weight),
                             PackedAdapter::Term{packed(term.a), packed(term.masked_b() * term.scale)});
      adapter->rank = std::max(adapter->rank, size(term.a.size(0)));
    }
  }
  if (!left.empty())
    throw Error("an adapter of ", left.begin()->first,
                " cannot be shared: only those of attention's and feed-forward networks' matrices can");
  return adapter;
}

// One thread computes A x of a sequence, since that is little work; then each adds B (A x) to its outputs.
void PackedStack::add_terms(const Run& run, const PackedLinear& linear, const kernels::PackedProduct& product,
                            const kernels::Preparation& input, Team::Part outputs) const {
  const std::vector<SequenceRows>& all = run.pass.sequences;
  const auto term_of = [&](const SequenceRows& rows) -> const PackedAdapter::Term* {
    if (rows.adapter == nullptr) return nullptr;
    const auto found = rows.adapter->terms.find(&linear);
    return found == rows.adapter->terms.end() ? nullptr : &found->second;
  };
  const kernels::PreparedRows floats{.data = run.workspace.adapted.data(),
                                     .row_bytes = input.width * sizeof(float)};
  auto* inner = run.workspace.adapted_inner.as<float>();
  const std::size_t rank = run.workspace.adapter_rank;
  for (std::size_t i = run.team.rank(); i < all.size(); i += run.team.size()) {
    const PackedAdapter::Term* term = term_of(all[i]);
    if (term == nullptr) continue;
    const std::size_t first = all[i].first_row;
    run.kernels.prepare(input, floats, first, first + all[i].count);
    run.kernels.multiply(
        {.weight = &term->a.weight(),
         .rows = {.data = floats.data + first * floats.row_bytes, .row_bytes = floats.row_bytes},
         .row_count = all[i].count,
         .result = inner + first * rank,
         .result_row = rank},
        0, term->a.weight().outputs);
  }
  run.team.wait();
  for (const SequenceRows& rows : all) {
    const PackedAdapter::Term* term = term_of(rows);
    if (term == nullptr) continue;
    auto* own = reinterpret_cast<std::byte*>(inner + rows.first_row * rank);
    run.kernels.multiply({.weight = &term->b.weight(),
                          .rows = {.data = own, .row_bytes = rank * sizeof(float)},
                          .row_count = rows.count,
                          .result = product.result + rows.first_row * product.result_row,
                          .result_row = product.result_row,
                          .adds = true},
                         outputs.first, outputs.last);
  }
}

}  // namespace zoo::inference
