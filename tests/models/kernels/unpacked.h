#pragma once

#include <vector>

#include "models/kernels/packed/packed_weight.h"

namespace zoo::test {

/// The elements [outputs, inputs] of a packed weight as a product uses them.
inline std::vector<float> unpacked(const kernels::PackedWeight& weight) {
  std::vector<float> rows(weight.outputs * weight.inputs);
  for (std::size_t panel = 0; panel < kernels::panel_count(weight.outputs); ++panel)
    kernels::unpack_panel(weight, panel, rows.data() + panel * kernels::kPanelOutputs * weight.inputs);
  return rows;
}

}  // namespace zoo::test
