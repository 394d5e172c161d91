#pragma once

#include <optional>
#include <span>
#include <string>

#include "apps/plots/attention_maps.h"

namespace zoo {

/// Title, description and initial head of the page.
struct AttentionPage {
  std::string model, text;
  std::optional<std::size_t> layer, head;  // none: the page chooses, and explains how
};

/// Maximum number of weights in a page; the browser stores each in a byte.
constexpr std::size_t kMostPageWeights = 48'000'000;

/// A self-contained HTML page: a grid of all heads, and one head with its heat map and lines between the
/// tokens. Weights have 256 levels, coded (level_coder.h) and in base64; texts are data, never markup.
std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps);

}  // namespace zoo
