#pragma once

#include "apps/plots/attention_maps.h"
#include "apps/plots/figures.h"

namespace zoo {

/// One head: tokens on both axes, the values in the cells of a short text.
Figure head_figure(const AttentionMaps& maps, std::size_t layer, std::size_t head);

/// Every head as a small map, a row of them for each layer. A long text's maps are made smaller: a cell shows
/// the largest weight of its part.
Figure heads_figure(const AttentionMaps& maps);

}  // namespace zoo
