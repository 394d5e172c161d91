#include "models/generation/logits_filters.h"

namespace zoo {

at::Tensor apply_filters(const LogitsFilters& filters, at::Tensor logits, const RowHistories& rows) {
  for (const auto& filter : filters) logits = filter->apply(logits, rows);
  return logits;
}

}  // namespace zoo
