#pragma once

#include "apps/plots/attention_maps.h"
#include "apps/plots/figures.h"

namespace zoo {

/// One head with tokens on both axes; the cells of a short text show their values.
Figure head_figure(const AttentionMaps& maps, std::size_t layer, std::size_t head);

/// All heads as small maps, one row per layer. A long text's maps are shrunk: a cell shows the largest weight
/// of its part.
Figure heads_figure(const AttentionMaps& maps, const std::vector<std::size_t>& layers,
                    const std::vector<std::size_t>& heads);

}  // namespace zoo
