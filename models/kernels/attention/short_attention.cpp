#include "models/kernels/attention/short_attention.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/kernels/aligned_memory.h"
#include "models/kernels/attention/head_attention.h"
#include "models/kernels/cpu.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/linear.h"

namespace zoo::kernels {
namespace {

// A qkv projection [B, T, 3C] of `heads` heads, whose B T rows are sequences one after another.
struct QkvHeads {
  struct Sequence {
    std::size_t begin, length;
    std::size_t weights;  // where those of its first head begin
  };
  const float* data;
  std::size_t width, heads, longest = 0, weights = 0;
  std::vector<Sequence> sequences;
  const HeadAttention& kernel;

  QkvHeads(const at::Tensor& qkv, std::int64_t num_heads, at::IntArrayRef lengths, const HeadAttention& by)
      : data(qkv.const_data_ptr<float>()),
        width(size_of(qkv, 2) / 3),
        heads(static_cast<std::size_t>(num_heads)),
        kernel(by) {
    std::size_t begin = 0;
    for (const std::int64_t each : lengths) {
      const auto length = static_cast<std::size_t>(each);
      sequences.push_back({begin, length, weights});
      begin += length;
      weights += heads * kernel.weights_size(length);
      longest = std::max(longest, length);
    }
  }

  // Calls visit(head, weights, offset, output_offset, scratch) for every head of every sequence, on all
  // threads. Offsets: start of the head's weights, and of its part in a [B, T, 3C] and in a [B, T, C] tensor.
  template <class Visit> void for_each_head(const Visit& visit) const {
    const std::size_t head_dim = width / heads, stride = 3 * width;
    const auto count = static_cast<std::int64_t>(sequences.size() * heads);
    parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
      const AlignedMemory<Word> scratch(kernel.scratch_size(longest, head_dim));
      for (auto index = static_cast<std::size_t>(begin); index < static_cast<std::size_t>(end); ++index) {
        const auto& [row, length, first] = sequences[index / heads];
        const std::size_t head = index % heads, column = head * head_dim;
        const float* q = data + row * stride + column;
        visit(Head{q, q + width, q + 2 * width, stride, length, head_dim},
              first + head * kernel.weights_size(length), row * stride + column, row * width + column,
              scratch.get());
      }
    });
  }
};

class CausalSelfAttention : public torch::autograd::Function<CausalSelfAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            std::int64_t num_heads, const std::vector<std::int64_t>& lengths, bool mixed) {
    const at::Tensor qkv = input.contiguous();
    const QkvHeads s(qkv, num_heads, lengths, kernel_of(mixed));
    at::Tensor output = at::empty({qkv.size(0), qkv.size(1), qkv.size(2) / 3}, qkv.options());
    at::Tensor weights = at::empty({static_cast<std::int64_t>(s.weights)}, at::kUInt32);
    float* out = output.mutable_data_ptr<float>();
    Word* words = weights.mutable_data_ptr<Word>();
    s.for_each_head(
        [&](const Head& head, std::size_t first, std::size_t, std::size_t output_offset, Word* scratch) {
          s.kernel.forward(head, words + first, out + output_offset, s.width, scratch);
        });
    context->save_for_backward({qkv, weights});
    context->saved_data["num_heads"] = num_heads;
    context->saved_data["lengths"] = lengths;
    context->saved_data["mixed"] = mixed;
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const QkvHeads s(qkv, context->saved_data["num_heads"].toInt(),
                     context->saved_data["lengths"].toIntVector(),
                     kernel_of(context->saved_data["mixed"].toBool()));
    const at::Tensor of_output = gradients[0].contiguous();
    at::Tensor gradient = at::empty_like(qkv);
    const float* out = of_output.const_data_ptr<float>();
    const Word* words = saved[1].const_data_ptr<Word>();
    float* data = gradient.mutable_data_ptr<float>();
    s.for_each_head([&](const Head& head, std::size_t first, std::size_t offset, std::size_t output_offset,
                        Word* scratch) {
      float* q = data + offset;
      s.kernel.backward(head, words + first, out + output_offset, s.width, {q, q + s.width, q + 2 * s.width},
                        scratch);
    });
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static const HeadAttention& kernel_of(bool mixed) { return mixed ? mixed_attention() : float_attention(); }
};

}  // namespace

bool has_short_attention(const at::Tensor& qkv, at::IntArrayRef documents) {
  if (!qkv.is_cpu() || qkv.scalar_type() != at::kFloat || qkv.dim() != 3 || !has_training_kernels())
    return false;
  const auto longest = std::max_element(documents.begin(), documents.end());
  return (documents.empty() ? qkv.size(1) : *longest) <= static_cast<std::int64_t>(kLongest);
}

at::Tensor causal_self_attention(const at::Tensor& qkv, std::int64_t num_heads, at::IntArrayRef documents) {
  TORCH_CHECK(qkv.size(-1) % (3 * num_heads) == 0, "qkv must be 3 * ", num_heads, " heads wide, got ",
              qkv.size(-1));
  const std::vector<std::int64_t> rows(documents.empty() ? size_of(qkv, 0) : 0, qkv.size(1));
  return CausalSelfAttention::apply(qkv, num_heads, documents.empty() ? rows : documents.vec(), is_mixed());
}

}  // namespace zoo::kernels
