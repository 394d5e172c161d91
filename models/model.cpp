#include "models/model.h"

namespace zoo {

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace zoo
