#pragma once

#include <span>
#include <string>

#include "apps/plots/attention_maps.h"

namespace zoo {

/// What the page says about itself, and the head that it opens with.
struct AttentionPage {
  std::string model, text;
  std::size_t layer = 0, head = 0;
  bool opens_with_head = false;  // false: with the grid of all heads
};

/// The weights that a page can hold: browsers refuse texts of more than about half a gigabyte.
constexpr std::size_t kMostPageWeights = 48'000'000;

/// A page of HTML that needs nothing but a browser: a grid of all heads, and each head by itself with its
/// heat map and lines between the tokens. Each weight takes two bytes, in base64; texts are data, never
/// markup.
std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps);

}  // namespace zoo
