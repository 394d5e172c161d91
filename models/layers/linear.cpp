#include "models/layers/linear.h"

#include <cmath>

#include <ATen/ops/embedding.h>
#include <ATen/ops/matmul.h>
#include <c10/util/Exception.h>

#include "models/layers/parameter.h"

namespace zoo {

LinearImpl::LinearImpl(std::int64_t in_features, std::int64_t out_features, bool with_bias) {
  weight = register_parameter("weight", make_parameter({out_features, in_features}));
  bias = register_parameter("bias", with_bias ? make_parameter({out_features}) : at::Tensor(), with_bias);
  if (!parameters_want_default()) return;
  // He et al. (2015) with a = sqrt(5), which is uniform on +-1/sqrt(in).
  const double bound = 1.0 / std::sqrt(static_cast<double>(in_features));
  const at::NoGradGuard no_grad;
  weight.uniform_(-bound, bound);
  if (with_bias) bias.uniform_(-bound, bound);
}

at::Tensor LinearImpl::forward(const at::Tensor& x, const ops::Residual& residual) const {
  return ops::linear(x, adapted_weight(), bias, residual);
}

at::Tensor LinearImpl::adapted_weight() const {
  return low_rank ? weight + at::matmul(low_rank->b, low_rank->a) * low_rank->scale : weight;
}

EmbeddingImpl::EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim, std::int64_t padding_id)
    : padding_id_(padding_id) {
  weight = register_parameter("weight", make_parameter({num_embeddings, embedding_dim}));
  if (!parameters_want_default()) return;
  const at::NoGradGuard no_grad;
  weight.normal_();
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) const {
  try {
    return at::embedding(weight, ids, padding_id_);
  } catch (const c10::IndexError&) {  // the CPU's own message does not name the id
    const at::Tensor outside = ids.masked_select(ids.lt(0).logical_or(ids.ge(weight.size(0))));
    TORCH_CHECK_INDEX(outside.numel() == 0, "the id ", outside[0].item<std::int64_t>(), " is not in [0, ",
                      weight.size(0), ")");
    throw;
  }
}

}  // namespace zoo
