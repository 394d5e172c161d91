#include "models/layers/attention/positions.h"

#include <cmath>
#include <iostream>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include "apps/demos/demo.h"
#include "models/layers/attention/attention.h"

namespace zoo::demos::positions {

constexpr std::int64_t kPositions = 128, kWidth = 64;

// M_k PE(p), built from k alone: rotates the pair of each frequency by its angle.
at::Tensor shift(const at::Tensor& table, std::int64_t by) {
  at::Tensor shifted = at::zeros_like(table);
  for (std::int64_t i = 0; i < kWidth; i += 2) {
    const double angle =
        static_cast<double>(by) / std::pow(10000.0, static_cast<double>(i) / static_cast<double>(kWidth));
    const at::Tensor sine = table.select(1, i), cosine = table.select(1, i + 1);
    shifted.select(1, i).copy_(sine * std::cos(angle) + cosine * std::sin(angle));
    shifted.select(1, i + 1).copy_(cosine * std::cos(angle) - sine * std::sin(angle));
  }
  return shifted;
}

// Compares unmasked attention on reversed words with its own output reversed.
void print_order(const at::Generator& generator) {
  SelfAttention attention(TransformerConfig{.hidden_size = kWidth, .num_heads = 4});
  draw_xavier(*attention, generator);
  const at::NoGradGuard no_grad;
  const at::Tensor words = at::randn({1, 6, kWidth}, generator), places = sinusoidal_positions(6, kWidth);
  const auto difference = [&](const at::Tensor& positions) {
    const auto attend = [&](const at::Tensor& x) { return attention(x + positions, SelfAttentionContext{}); };
    return (attend(words.flip(1)) - attend(words).flip(1)).abs().max().item<double>();
  };
  std::cout
      << paragraph(
             "Words in reverse order: the outputs are the same in reverse order without positions (they "
             "differ by " +
             format_text("%.0e), and others with them (by %.1f)", difference(at::zeros_like(places)),
                         difference(places)))
      << "\n";
}

void print_shift_property() {
  const at::Tensor table = sinusoidal_positions(kPositions + 64, kWidth);
  const at::Tensor here = table.slice(0, 0, kPositions);
  Table rows(columns({}, {"k", "largest |PE(p+k) - M_k PE(p)|", "PE(p)·PE(p+k)", "its spread over p"}));
  for (const std::int64_t k : {1, 2, 8, 32, 64}) {
    const at::Tensor there = table.slice(0, k, kPositions + k);
    const at::Tensor products = (here * there).sum(-1);
    rows.row({std::to_string(k), format_text("%.1e", (there - shift(here, k)).abs().max().item<double>()),
              format_text("%.3f", products.mean().item<double>()),
              format_text("%.1e", (products.max() - products.min()).item<double>())});
  }
  std::cout << paragraph("Sinusoidal: one matrix M_k, the same for all " + std::to_string(kPositions) +
                         " positions p, moves by k");
  rows.print(std::cout);
}

// q . k with both rotated to their positions, m and n.
double rotary_score(const at::Tensor& q, const at::Tensor& k, std::int64_t m, std::int64_t n) {
  const auto turned = [](const at::Tensor& x, std::int64_t position) {
    const at::Tensor at_position = at::full({1}, position, at::kLong);
    return RotaryTable::make(at_position, kWidth, 10000.0).rotate(x);
  };
  return (turned(q, m) * turned(k, n)).sum().item<double>();
}

void print_rotary(const at::Tensor& q, const at::Tensor& k, const at::Tensor& learned) {
  Table rows(columns({}, {"distance", "rotary, at 0", "at 100", "at 1000", "learned table, at 0", "at 100"}));
  const auto score = [&](std::int64_t query, std::int64_t distance) {
    return ((q + learned[query]) * (k + learned[query + distance])).sum().item<double>();
  };
  for (const std::int64_t distance : {0, 1, 4, 16}) {
    std::vector<double> scores;
    for (const std::int64_t start : {0, 100, 1000})
      scores.push_back(rotary_score(q, k, start, start + distance));
    for (const std::int64_t start : {0, 100}) scores.push_back(score(start, distance));
    rows.row(cells(std::to_string(distance), scores, "%.4f"));
  }
  print_paragraph(
      "Rotary, over the head dimension: the same q and k at the same distance score the same "
      "anywhere");
  rows.print(std::cout);
}

void print_relative() {
  const at::Tensor distances = relative_distances(kPositions, kPositions, at::kCPU);
  constexpr std::int64_t kQuery = 110, kDistances[] = {-100, -20, -8, -1, 0, 1, 8};
  std::vector<std::string> headings;
  for (const std::int64_t distance : kDistances) headings.push_back(std::to_string(distance));
  Table rows(columns({"what depends on the distance alone"}, headings));
  const auto row = [&](const std::string& name, const at::Tensor& values, const char* format) {
    std::vector<double> numbers;
    for (const std::int64_t distance : kDistances)
      numbers.push_back(values[kQuery][kQuery + distance].item<double>());
    rows.row(cells(name, numbers, format));
  };
  row("T5's bucket (both directions)", t5_buckets(distances, {}), "%.0f");
  row("ALiBi's bias, head 0 of 8", alibi_bias(distances, 8)[0][0], "%.3f");
  row("ALiBi's bias, head 7 of 8", alibi_bias(distances, 8)[0][7], "%.3f");
  row("Shaw's row, clipped to 16", distances.clamp(-16, 16) + 16, "%.0f");
  std::cout << "\n";
  rows.print(std::cout);
}

void print_decisions() {
  Table rows({{"positions"}, {"parameters"}, {"longer than trained"}, {"choose it for"}});
  rows.row({"sinusoidal", "none", "defined, not learnt", "a fixed table without training"});
  rows.row({"learned", "max_positions x C", "impossible", "inputs of bounded length (BERT, GPT-2)"});
  rows.row({"Shaw", "2 (2k + 1) D a layer", "yes: clipped distances", "short texts where order is all"});
  rows.row({"T5 buckets", "buckets x H", "somewhat: a last bucket", "encoder-decoders"});
  rows.row({"rotary", "none", "with lowered frequencies", "decoders today (Llama)"});
  rows.row({"ALiBi", "none", "yes: it fades out", "training short, reading long"});
  std::cout << "\n";
  rows.print(std::cout);
}

Figure curves() {
  const at::Tensor table = sinusoidal_positions(kPositions, kWidth);
  std::vector<Curve> lines;
  for (const std::int64_t dimension : {0, 4, 8, 16, 32})
    lines.push_back({"dimension " + std::to_string(dimension), numbers_of(at::arange(kPositions)),
                     numbers_of(table.select(1, dimension))});
  return line_chart({.title = "Sinusoidal: a wave for each dimension", .x = "position", .y = "PE"}, lines);
}

Figure table_map() {
  return heat_map(
      {.axes = {.title = "Sinusoidal: each row a position's signature", .x = "dimension", .y = "position"},
       .cells = matrix_of(sinusoidal_positions(kPositions, kWidth)),
       .values = false,
       .low = -1,
       .high = 1});
}

Figure rotary_decay() {
  const at::Tensor ones = at::full({1, 1, 1, kWidth}, 1.0);
  Curve line{"rotary, q = k = 1", {}, {}};
  for (std::int64_t distance = 0; distance <= 256; distance += 2)
    line.add(distance, rotary_score(ones, ones, 0, distance) / static_cast<double>(kWidth));
  return line_chart({.title = "Rotary: the score of equal vectors", .x = "distance", .y = "q·k / D"}, {line});
}

Figure buckets() {
  const at::Tensor distances = at::arange(-160, 161);
  return line_chart({.title = "T5: far distances share a bucket", .x = "key - query", .y = "bucket"},
                    {{"bucket", numbers_of(distances), numbers_of(t5_buckets(distances, {}))}});
}

Figure clipped() {
  const at::Tensor distances = at::arange(-160, 161);
  return line_chart({.title = "Shaw: distances beyond 16 share a row", .x = "key - query", .y = "row"},
                    {{"row", numbers_of(distances), numbers_of(distances.clamp(-16, 16) + 16)}});
}

Figure biases() {
  std::vector<Curve> lines;
  for (const std::int64_t head : {0, 2, 4, 7})
    lines.push_back({"head " + std::to_string(head), numbers_of(at::arange(65) - 64),
                     numbers_of(alibi_bias(relative_distances(1, 65, at::kCPU), 8)[0][head][0])});
  return line_chart({.title = "ALiBi: what is added to the scores", .x = "key - query", .y = "bias"}, lines);
}

}  // namespace zoo::demos::positions

void zoo::demo_positions(const Arguments& arguments) {
  using namespace demos::positions;
  DemoOptions options;
  Flags flags(arguments.command,
              "Compares six position encodings and checks the properties that they promise.");
  if (!begin_demo(flags, arguments, options)) return;

  const at::Generator generator = generator_of(options.seed());
  const at::Tensor q = at::randn({kWidth}, generator), k = at::randn({kWidth}, generator);
  print_order(generator);
  print_shift_property();
  print_rotary(q, k, at::randn({kPositions, kWidth}, generator));
  print_relative();
  print_decisions();
  print_paragraph(
      "See that M_k errs by rounding only, and that rotary scores do not change along a row while a "
      "learned table's do.");
  show(options, "positions",
       grid("Positions", {curves(), table_map(), rotary_decay(), buckets(), clipped(), biases()}, 2));
}
