#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zoo {

/// Shape of a list of maps, each of `rows` rows with `columns` levels. `causal`: levels right of the diagonal
/// are 0 and omitted.
struct LevelMaps {
  std::size_t rows = 0, columns = 0;
  bool causal = false;
};

/// Compresses the maps' levels: most attention weights are near 0, and similar to their neighbours. An
/// adaptive binary range coder (Martin, 1979), LZMA's variant. Each level is coded as "above 0", "above 1"
/// and its eight bits, with probabilities that depend on the levels to the left and above.
/// apps/plots/page/levels.js decodes it.
std::string encode_levels(std::span<const std::uint8_t> levels, const LevelMaps& maps);

}  // namespace zoo
