#include <iostream>
#include <limits>
#include <numeric>

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include "apps/demos/demo.h"
#include "models/layers/attention/attention.h"

namespace zoo::demos::masking {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  std::string title;
  bool causal;
  std::vector<std::int64_t> keep;  // empty: no padding
};

struct Heads {
  at::Tensor q, k, v;  // [1, 1, T, D]
};

AttentionOutput attend(const Heads& heads, const Case& what) {
  const std::int64_t length = heads.q.size(2);
  const at::Tensor keep = what.keep.empty() ? at::Tensor() : at::tensor(what.keep).unsqueeze(0);
  const AttentionMask mask = make_attention_mask(
      keep, {.queries = length, .keys = length, .causal = what.causal}, at::kFloat, at::kCPU);
  return ops::scaled_dot_product_attention(heads.q, heads.k, heads.v, mask, {.need_weights = true});
}

void mask(const Case& what, HeatMap& map) {
  map.masked.assign(map.cells.size(), std::vector<bool>(map.cells.front().size(), false));
  if (what.causal) map.mask_causally();
  for (std::size_t key = 0; key < what.keep.size(); ++key)
    for (std::vector<bool>& row : map.masked) row[key] = row[key] || what.keep[key] == 0;
}

void print(const std::string& title, const at::Tensor& weights, const std::vector<std::string>& words) {
  std::vector<std::string> headings = words;
  headings.push_back("sum");
  Table table(columns({title}, headings));
  auto rows = matrix_of(weights);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].push_back(std::accumulate(rows[row].begin(), rows[row].end(), 0.0));
    table.row(cells(words[row], rows[row], "%.3f"));
  }
  table.print(std::cout);
  std::cout << "\n";
}

// Change of each position's output when the last token is replaced.
void print_leak(const Heads& heads, const Case& what) {
  Heads changed{heads.q, heads.k.clone(), heads.v.clone()};
  changed.k.select(2, -1).add_(10.0);
  changed.v.select(2, -1).add_(10.0);
  const at::Tensor moved = (attend(heads, what).output - attend(changed, what).output).abs().amax(-1)[0][0];
  std::cout << what.title << ": another last token moves the outputs by";
  for (const double by : numbers_of(moved)) std::cout << format_text(" %.3g", by);
  std::cout << "\n";
}

// Two ways to get NaN in tutorials, and our handling.
void print_nan(const Heads& heads) {
  const std::int64_t length = heads.q.size(2);
  const at::Tensor product = at::ones({length, length}).triu(1) * -kInfinity;
  const at::Tensor hidden = at::ones({1, length}) * -kInfinity;
  const Case left{"left padding", true, {0, 0, 1, 1, 1, 1}};
  const AttentionOutput output = attend(heads, left);
  const auto holes = [](const at::Tensor& x) { return x.isnan().sum().item<std::int64_t>(); };
  print_paragraph(format_text(
      "triu(ones) * -inf holds %ld NaN (0 * -inf), where a mask of zeros was meant;\nsoftmax of a "
      "row of -inf alone holds %ld NaN; here a row whose keys are all hidden gives zeros: %ld "
      "NaN,\nthe sum of the first row %g.",
      holes(product), holes(hidden.softmax(-1)), holes(output.weights),
      output.weights[0][0][0].sum().item<double>()));
}

}  // namespace zoo::demos::masking

void zoo::demo_masking(const Arguments& arguments) {
  using namespace demos::masking;
  DemoOptions options;
  Flags flags(arguments.command, "Shows what causal and padding masks hide, and where NaN comes from.");
  if (!begin_demo(flags, arguments, options)) return;

  const std::vector<std::string> words{"the", "cat", "sat", "on", "the", "mat"};
  const auto length = std::ssize(words);
  const at::Generator generator = generator_of(options.seed());
  const auto draw_heads = [&] { return at::randn({1, 1, length, 16}, generator); };
  const Heads heads{draw_heads(), draw_heads(), draw_heads()};
  const std::vector<Case> cases{{"no mask", false, {}},
                                {"causal mask", true, {}},
                                {"padding mask", false, {1, 1, 1, 1, 0, 0}},
                                {"causal mask, left padding", true, {0, 0, 1, 1, 1, 1}}};
  std::vector<Figure> panels;
  for (const Case& what : cases) {
    const at::Tensor weights = attend(heads, what).weights[0][0];
    print(what.title, weights, words);
    HeatMap map = weights_map(what.title, weights, words);
    mask(what, map);
    panels.push_back(heat_map(map));
  }
  print_leak(heads, cases[0]);
  print_leak(heads, cases[1]);
  print_nan(heads);
  show(options, "masking", grid("Attention weights under masks (hatched: masked)", panels, 2));
}
