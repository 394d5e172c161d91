#include "data/tokens/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "data/base/error.h"

namespace zoo {
namespace {

// `total` as a sum of `parts` positive numbers, uniform over all such sums, by cuts between items.
std::vector<std::int64_t> divide(std::int64_t total, std::int64_t parts, RandomStream& random) {
  std::vector<std::int64_t> cuts = random.permutation(total - 1);
  cuts.resize(static_cast<std::size_t>(parts - 1));
  std::ranges::sort(cuts);
  std::vector<std::int64_t> lengths;
  std::int64_t begin = 0;
  for (const std::int64_t cut : cuts) {
    lengths.push_back(cut + 1 - begin);
    begin = cut + 1;
  }
  lengths.push_back(total - begin);
  return lengths;
}

}  // namespace

SpanCorruptionLengths corrupted_lengths(std::int64_t tokens, const SpanCorruptionOptions& options) {
  const auto rounded = [](double value) { return static_cast<std::int64_t>(std::nearbyint(value)); };
  const double length = static_cast<double>(tokens);
  const std::int64_t hidden =
      std::clamp<std::int64_t>(rounded(length * options.noise_density), 1, tokens - 1);
  // The number of visible spans equals that of hidden ones.
  const std::int64_t most = std::min(hidden, tokens - hidden);
  const std::int64_t spans =
      std::clamp<std::int64_t>(rounded(static_cast<double>(hidden) / options.mean_span_length), 1, most);
  return {
      .tokens = tokens, .inputs = tokens - hidden + spans + 1, .targets = hidden + spans + 1, .spans = spans};
}

SpanCorruptionLengths lengths_for_inputs(std::int64_t inputs, const SpanCorruptionOptions& options) {
  if (inputs < 3) throw Error("span corruption needs inputs of 3 tokens at least, found ", inputs);
  SpanCorruptionLengths best = corrupted_lengths(2, options);
  for (std::int64_t tokens = 3;; ++tokens) {
    const SpanCorruptionLengths next = corrupted_lengths(tokens, options);
    if (next.inputs > inputs) break;
    best = next;
  }
  if (best.spans > static_cast<std::int64_t>(options.sentinels.size()))
    throw Error("span corruption of ", inputs, " tokens hides ", best.spans, " spans, and the tokenizer has ",
                options.sentinels.size(), " sentinels such as <extra_id_0>");
  return best;
}

NoiseSpans draw_noise_spans(const SpanCorruptionLengths& lengths, RandomStream& random) {
  const std::int64_t hidden = lengths.targets - lengths.spans - 1;
  NoiseSpans spans;
  spans.hidden = divide(hidden, lengths.spans, random);
  spans.kept = divide(lengths.tokens - hidden, lengths.spans, random);
  return spans;
}

CorruptedText corrupt_spans(std::span<const std::int64_t> tokens, const NoiseSpans& spans,
                            const SpanCorruptionOptions& options) {
  CorruptedText text;
  std::size_t at = 0;
  const auto append = [&](std::vector<std::int64_t>& to, std::int64_t count) {
    const auto part = tokens.subspan(at, static_cast<std::size_t>(count));
    to.insert(to.end(), part.begin(), part.end());
    at += part.size();
  };
  for (std::size_t i = 0; i < spans.kept.size(); ++i) {
    append(text.inputs, spans.kept[i]);
    text.inputs.push_back(options.sentinels[i]);
    text.targets.push_back(options.sentinels[i]);
    append(text.targets, spans.hidden[i]);
  }
  text.inputs.push_back(options.eos_id);
  text.targets.push_back(options.eos_id);
  return text;
}

}  // namespace zoo
