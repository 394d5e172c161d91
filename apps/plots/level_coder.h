#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zoo {

/// Shape of a list of maps, each of `rows` rows with `columns` levels. `causal`: levels right of a row's own
/// column are 0 and are left out.
struct LevelMaps {
  std::size_t rows = 0, columns = 0;
  bool causal = false;
};

/// The maps' levels in as few bytes as they need: most weights of attention are near 0, and near those beside
/// them. An adaptive binary range coder (Martin, 1979) in the form that LZMA gave it. Each level is coded as
/// "above 0", "above 1" and its eight bits, with probabilities that depend on the levels left of it and above
/// it. apps/plots/page/levels.js reads it.
std::string encode_levels(std::span<const std::uint8_t> levels, const LevelMaps& maps);

}  // namespace zoo
