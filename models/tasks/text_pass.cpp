#include "models/tasks/text_pass.h"

#include <algorithm>

namespace zoo {

std::vector<at::Tensor> run_at_once(const TextPass& pass, const std::vector<Encoding>& texts) {
  const std::vector<std::size_t> order = by_length(texts);
  std::vector<at::Tensor> results(texts.size());
  for (std::size_t begin = 0; begin < order.size(); begin += pass.most_texts) {
    const std::size_t end = std::min(begin + pass.most_texts, order.size());
    std::vector<const Encoding*> batch;
    for (std::size_t i = begin; i < end; ++i) batch.push_back(&texts[order[i]]);
    const std::vector<at::Tensor> rows = pass.compute(batch);
    for (std::size_t i = begin; i < end; ++i) results[order[i]] = rows[i - begin];
  }
  return results;
}

}  // namespace zoo
