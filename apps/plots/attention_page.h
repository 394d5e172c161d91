#pragma once

#include <span>
#include <string>

#include "apps/plots/attention_maps.h"

namespace zoo {

/// Title, description and initial head of the page.
struct AttentionPage {
  std::string model, text;
  std::size_t layer = 0, head = 0;
  bool opens_with_head = false;  // false: opens with the grid of all heads
};

/// Maximum weights of a page: browsers refuse texts of more than about half a gigabyte.
constexpr std::size_t kMostPageWeights = 48'000'000;

/// A self-contained HTML page: a grid of all heads, and each head with its heat map and lines between the
/// tokens. Each weight takes two bytes, in base64; texts are data, never markup.
std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps);

}  // namespace zoo
