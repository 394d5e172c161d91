#include "models/kernels/attention/short_attention.h"

#include <memory>
#include <new>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/attention/mixed_attention_kernel.h"
#include "models/kernels/attention/short_attention_kernel.h"
#include "models/kernels/bfloat16_linear.h"
#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"

namespace zoo::kernels {
namespace {

// A head's weights of 256 x 256 floats take a quarter of a core's L2 cache.
constexpr std::int64_t kLongest = 256;

struct FloatKernel {
  using Element = float;
  static constexpr auto kType = at::kFloat;
  static constexpr auto weights_size = short_attention::weights_size;
  static constexpr auto scratch_size = short_attention::scratch_size;
  static constexpr auto forward = short_attention::forward;
  static constexpr auto backward = short_attention::backward;
};

struct MixedKernel {
  using Element = mixed_attention::Pair;
  static constexpr auto kType = at::kUInt32;
  static constexpr auto weights_size = mixed_attention::weights_size;
  static constexpr auto scratch_size = mixed_attention::scratch_size;
  static constexpr auto forward = mixed_attention::forward;
  static constexpr auto backward = mixed_attention::backward;
};

template <class Element>
class Scratch {
 public:
  explicit Scratch(std::size_t size)
      : data_(static_cast<Element*>(::operator new (size * sizeof(Element), std::align_val_t{64}))) {}
  Element* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(Element* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<Element, Free> data_;
};

struct Sizes {
  std::int64_t batch, length, width, heads;

  Sizes(const at::Tensor& qkv, std::int64_t num_heads)
      : batch(qkv.size(0)), length(qkv.size(1)), width(qkv.size(2) / 3), heads(num_heads) {}

  std::size_t head_dim() const { return static_cast<std::size_t>(width / heads); }
};

// Calls visit(head, index, offset, scratch) for every head of every row, on all threads. offset: start of the
// head's part in a [B, T, 3C] tensor.
template <class Kernel, class Visit>
void for_each_head(const float* qkv, const Sizes& s, const Visit& visit) {
  parallel_for(0, s.batch * s.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<typename Kernel::Element> scratch(
        Kernel::scratch_size(static_cast<std::size_t>(s.length), s.head_dim()));
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t row = index / s.heads,
                         column = index % s.heads * static_cast<std::int64_t>(s.head_dim());
      const std::int64_t offset = row * s.length * 3 * s.width + column;
      const float* q = qkv + offset;
      const short_attention::Head head{.q = q,
                                       .k = q + s.width,
                                       .v = q + 2 * s.width,
                                       .stride = static_cast<std::size_t>(3 * s.width),
                                       .length = static_cast<std::size_t>(s.length),
                                       .head_dim = s.head_dim()};
      visit(head, index, offset, row * s.length * s.width + column, scratch.get());
    }
  });
}

template <class Kernel>
class CausalSelfAttention : public torch::autograd::Function<CausalSelfAttention<Kernel>> {
 public:
  using Element = typename Kernel::Element;

  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            std::int64_t num_heads) {
    const at::Tensor qkv = input.contiguous();
    const Sizes s(qkv, num_heads);
    const std::size_t weights_size = Kernel::weights_size(static_cast<std::size_t>(s.length));
    at::Tensor output = at::empty({s.batch, s.length, s.width}, qkv.options());
    at::Tensor weights =
        at::empty({s.batch * s.heads, static_cast<std::int64_t>(weights_size)}, Kernel::kType);
    float* out = output.mutable_data_ptr<float>();
    auto* all_weights = weights.mutable_data_ptr<Element>();
    for_each_head<Kernel>(
        qkv.const_data_ptr<float>(), s,
        [&](const auto& head, std::int64_t index, std::int64_t, std::int64_t out_offset, Element* scratch) {
          Kernel::forward(head, all_weights + static_cast<std::size_t>(index) * weights_size,
                          out + out_offset, static_cast<std::size_t>(s.width), scratch);
        });
    context->save_for_backward({qkv, weights});
    context->saved_data["num_heads"] = num_heads;
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], &weights = saved[1];
    const Sizes s(qkv, context->saved_data["num_heads"].toInt());
    const at::Tensor output_gradient = gradients[0].contiguous();
    at::Tensor gradient = at::empty_like(qkv);
    const auto weights_size = weights.size(1);
    const auto* out_gradient = output_gradient.const_data_ptr<float>();
    const auto* all_weights = weights.const_data_ptr<Element>();
    float* data = gradient.mutable_data_ptr<float>();
    for_each_head<Kernel>(qkv.const_data_ptr<float>(), s,
                          [&](const auto& head, std::int64_t index, std::int64_t offset,
                              std::int64_t out_offset, Element* scratch) {
                            float* q = data + offset;
                            Kernel::backward(head, all_weights + index * weights_size,
                                             out_gradient + out_offset, static_cast<std::size_t>(s.width),
                                             {q, q + s.width, q + 2 * s.width}, scratch);
                          });
    return {gradient, at::Tensor()};
  }
};

}  // namespace

bool has_short_attention(const at::Tensor& qkv) {
  return qkv.is_cpu() && qkv.scalar_type() == at::kFloat && qkv.dim() == 3 && qkv.size(1) <= kLongest &&
         has_training_kernels();
}

at::Tensor causal_self_attention(const at::Tensor& qkv, std::int64_t num_heads) {
  TORCH_CHECK(qkv.size(-1) % (3 * num_heads) == 0, "qkv must be 3 * ", num_heads, " heads wide, got ",
              qkv.size(-1));
  if (is_mixed() && has_bfloat16_products()) return CausalSelfAttention<MixedKernel>::apply(qkv, num_heads);
  return CausalSelfAttention<FloatKernel>::apply(qkv, num_heads);
}

}  // namespace zoo::kernels
