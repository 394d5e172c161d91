#include "models/layers/attention/efficient_attention.h"

#include <cmath>
#include <iostream>

#include <ATen/ops/eye.h>
#include <ATen/ops/randn.h>

#include "apps/compute/compute.h"
#include "apps/demos/demo.h"
#include "models/layers/attention/attention.h"

namespace zoo::demos::efficient_attention {

constexpr std::int64_t kHeads = 2, kSize = 32, kShortest = 128, kCompared = 512;
constexpr std::int64_t kWindow = 64, kMixtures = 64;
// Above this limit the weights of full attention take a gigabyte or more.
constexpr std::int64_t kMostWeights = std::int64_t{1} << 26;

struct Heads {
  at::Tensor q, k, v;  // [1, H, T, D]
};

// Neighbouring positions are similar, as in text: a random walk with decay.
Heads draw_heads(std::int64_t length, const at::Generator& generator) {
  const at::Tensor noise = at::randn({length, kHeads, kSize}, generator);
  at::Tensor walk = noise.clone();
  for (std::int64_t t = 1; t < length; ++t) walk[t].copy_(walk[t - 1] * 0.95 + noise[t] * 0.31);
  const at::Tensor x = walk.permute({1, 0, 2}).unsqueeze(0).contiguous();
  return {x * 1.5, x * 1.5, at::randn(x.sizes(), generator)};
}

struct Method {
  std::string name, complexity;
  std::function<at::Tensor(const Heads&)> attend;  // [1, H, T, D]
};

at::Tensor full(const Heads& h, bool explicit_weights) {
  return ops::scaled_dot_product_attention(h.q, h.k, h.v, {}, {.need_weights = explicit_weights}).output;
}

at::Tensor sparse(const Heads& h, AttentionKind kind, std::int64_t window) {
  return sparse_attention(h.q, h.k, h.v, {.kind = kind, .window = window}).output;
}

// Untrained projections are random: rows of variance 1 / mixtures keep lengths (Johnson and Lindenstrauss).
at::Tensor linformer(const Heads& h, std::int64_t mixtures) {
  const at::Tensor projection =
      at::randn({mixtures, h.k.size(2)}, generator_of(1)) / std::sqrt(static_cast<double>(mixtures));
  return linformer_attention(h.q, h.k, h.v, projection, projection, {.kind = AttentionKind::kLinformer})
      .output;
}

std::int64_t root(std::int64_t length) {
  return static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(length))));
}

std::vector<Method> methods() {
  return {
      {"full, weights kept", "n² D", [](const Heads& h) { return full(h, true); }},
      {"full, fused", "n² D", [](const Heads& h) { return full(h, false); }},
      {"sliding window 64", "n w D",
       [](const Heads& h) { return sparse(h, AttentionKind::kSlidingWindow, kWindow); }},
      {"strided, √n", "n √n D",
       [](const Heads& h) { return sparse(h, AttentionKind::kStridedSparse, root(h.q.size(2))); }},
      {"linear", "n D²",
       [](const Heads& h) {
         return linear_attention(h.q, h.k, h.v, {.kind = AttentionKind::kLinear}).output;
       }},
      {"Linformer 64", "n k D", [](const Heads& h) { return linformer(h, kMixtures); }},
  };
}

double difference(const at::Tensor& output, const at::Tensor& exact) {
  return ((output - exact).norm() / exact.norm()).item<double>();
}

void print_differences(const Heads& h) {
  const at::Tensor exact = full(h, true);
  Table table({{"attention"}, {"the same except for"}, number("difference to full")});
  const auto row = [&](const std::string& name, const std::string& choice, const at::Tensor& output) {
    table.row({name, choice, format_text("%.1e", difference(output, exact))});
  };
  row("fused", "the order of sums", full(h, false));
  for (const std::int64_t window : {16, 64, 256, 512})
    row("sliding window", "window " + std::to_string(window),
        sparse(h, AttentionKind::kSlidingWindow, window));
  for (const std::int64_t stride : {128, 23, 4, 1})
    row("strided sparse", "stride " + std::to_string(stride),
        sparse(h, AttentionKind::kStridedSparse, stride));
  row("linear", "another kernel", linear_attention(h.q, h.k, h.v, {.kind = AttentionKind::kLinear}).output);
  for (const std::int64_t mixtures : {16, 64, 256})
    row("Linformer", std::to_string(mixtures) + " random mixtures", linformer(h, mixtures));
  const at::Tensor same = at::eye(kCompared);
  row("Linformer", "every key its own mixture",
      linformer_attention(h.q, h.k, h.v, same, same, {.kind = AttentionKind::kLinformer}).output);
  std::cout << "Relative difference of the outputs, " << kCompared << " positions, untrained\n";
  table.print(std::cout);
}

struct Measured {
  std::vector<Curve> times, memory;  // one line per method
};

void print_costs(const char* title, const std::vector<Method>& all, const std::vector<Curve>& lines,
                 const std::vector<std::string>& lengths, const char* format) {
  std::cout << title << ": a forward pass of " << kHeads << " heads of " << kSize << ", " << threads_text()
            << "\n";
  Table table(columns({"attention", "operations"}, lengths));
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> row = cells(all[i].name, lines[i].y, format);
    row.insert(row.begin() + 1, all[i].complexity);
    row.resize(lengths.size() + 2, "-");  // where it is too large
    table.row(row);
  }
  table.print(std::cout);
}

Measured measure_methods(std::int64_t longest, const at::Generator& generator) {
  const std::vector<Method> all = methods();
  Measured measured;
  for (const Method& method : all)
    for (auto* lines : {&measured.times, &measured.memory}) lines->push_back({method.name, {}, {}});
  std::vector<std::string> lengths;
  for (std::int64_t length = kShortest; length <= longest; length *= 2) {
    lengths.push_back(std::to_string(length));
    const Heads heads = draw_heads(length, generator);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name == "full, weights kept" && kHeads * length * length > kMostWeights) continue;
      const Cost cost = cost_of([&] { static_cast<void>(all[i].attend(heads)); });
      measured.times[i].add(length, 1000 * cost.seconds);
      measured.memory[i].add(length, static_cast<double>(cost.peak_bytes) / 1e6);
    }
  }
  print_costs("\nTime, ms", all, measured.times, lengths, "%.2f");
  print_costs("\nPeak memory, MB", all, measured.memory, lengths, "%.1f");
  return measured;
}

Figure pattern(const std::string& title, AttentionKind kind, std::int64_t window) {
  const at::Tensor visible = visible_keys({.kind = kind, .window = window, .causal = true}, 36, 36, at::kCPU);
  HeatMap map = weights_map(title, visible.to(at::kFloat));
  map.values = false;
  for (const auto& row : map.cells) {
    map.masked.emplace_back();
    for (const double seen : row) map.masked.back().push_back(seen == 0);
  }
  return heat_map(map);
}

}  // namespace zoo::demos::efficient_attention

void zoo::demo_efficient_attention(const Arguments& arguments) {
  using namespace demos::efficient_attention;
  DemoOptions options;
  std::int64_t longest = 8192;
  Flags flags(arguments.command,
              "Compares attention that does not look at every pair of tokens with attention that does.");
  flags.add("longest", longest, "length of the longest sequence to measure", between(kShortest, 65536));
  if (!begin_demo(flags, arguments, options)) return;

  const at::NoGradGuard no_grad;
  const at::Generator generator = generator_of(options.seed());
  print_differences(draw_heads(kCompared, generator));
  const Measured measured = measure_methods(longest, generator);
  std::string growth;
  for (const Curve& line : measured.times)
    if (line.y.size() > 1) growth += (growth.empty() ? "" : ", ") + line.title + " " + last_growth(line);
  print_paragraph(
      "The weights of full attention are not stored where they would take more than " +
      human_bytes(4 * kMostWeights) +
      ": its line ends there.\nTimes as long for the last doubling of the length, on " + threads_text() +
      ": " + growth +
      ".\nBy the operations full attention takes 4 times as long, stored or fused, and a window, sums and "
      "mixtures twice.\nWhat they leave out is the difference above: a window as wide as the sequence leaves "
      "out nothing.");
  const auto panel = [](const char* title, const char* y, const std::vector<Curve>& lines) {
    return line_chart({.title = title, .x = "positions", .y = y, .log_x = true, .log_y = true}, lines);
  };
  show(options, "efficient-attention",
       grid("Attention over long sequences",
            {panel("Time of a forward pass", "ms", measured.times),
             panel("Peak memory", "MB", measured.memory),
             pattern("Sliding window 4, causal", AttentionKind::kSlidingWindow, 4),
             pattern("Strided 6, causal", AttentionKind::kStridedSparse, 6)},
            2));
}
