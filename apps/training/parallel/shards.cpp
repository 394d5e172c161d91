#include "apps/training/parallel/shards.h"

#include <algorithm>
#include <map>

#include <ATen/autocast_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "data/base/field_error.h"
#include "data/base/sizes.h"
#include "models/layers/stack.h"

namespace zoo {
namespace {

// Each needs a gradient's memory on ranks that do not own it.
constexpr std::size_t kSumsOnTheirWay = 4;

c10::StorageImpl* storage_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

bool is_in(const std::vector<at::Tensor>& some, const at::Tensor& tensor) {
  return std::ranges::any_of(some, [&](const at::Tensor& other) { return other.is_same(tensor); });
}

// What the stack reads outside of its blocks stays on all ranks.
std::vector<at::Tensor> weights_of_blocks(const torch::nn::Module& module) {
  std::vector<at::Tensor> weights;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    const auto* stack = part->as<TransformerStackImpl>();
    if (stack == nullptr) continue;
    for (const auto& block : *stack->blocks)
      for (const auto& entry : block->named_parameters())
        if (entry.key().find("position_bias") == std::string::npos) weights.push_back(entry.value());
  }
  return weights;
}

}  // namespace

Shards::Shards(torch::nn::Module& module, std::vector<Weight> weights, Ranks& ranks, Shard shard)
    : weights_(std::move(weights)),
      ranks_(ranks),
      apart_(weights_.size()),
      means_(weights_.size()),
      uses_(at::zeros({std::ssize(weights_)})) {
  if (shard == Shard::kWeights) {
    find_apart(module);
    if (std::ranges::count(apart_, true) == 0)
      throw UnfitField(Field{"shard"}, " weights: this model has no blocks whose weights are trained");
    recompute_blocks(module, true);
    part_weights() = this;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (apart_[i]) free(i);
  }
  find_order(module);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(weights_[i].tensor);
    const auto key = accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, i](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          if (in_pass_) {
            ready_[i] = true;
            send_ready();
          }
          return outputs;
        }));
    hooks_.emplace_back(std::move(accumulator), key);
  }
}

Shards::~Shards() {
  for (const auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
  if (part_weights() == this) part_weights() = nullptr;
}

// Those of blocks that nothing else reads, neither as a tied weight nor as part of its memory.
void Shards::find_apart(const torch::nn::Module& module) {
  std::map<c10::StorageImpl*, std::int64_t> reads;
  for (const at::Tensor& weight : module.parameters()) ++reads[storage_of(weight)];
  const std::vector<at::Tensor> of_blocks = weights_of_blocks(module);
  for (const at::Tensor& weight : of_blocks) --reads[storage_of(weight)];
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor& weight = weights_[i].tensor;
    apart_[i] = weight.is_contiguous() && weight.storage_offset() == 0 &&
                weight.storage().nbytes() == weight.nbytes() && reads[storage_of(weight)] == 0 &&
                is_in(of_blocks, weight);
  }
}

// As the module has them, but what all blocks of a stack read, such as T5's table of positions, before these:
// its gradient comes after theirs.
void Shards::find_order(const torch::nn::Module& module) {
  order_ = indices_below(weights_.size());
  for (const auto& part : module.modules(/*include_self=*/false)) {
    const auto* stack = part->as<TransformerStackImpl>();
    if (stack == nullptr) continue;
    const std::vector<at::Tensor> own = stack->parameters(), of_blocks = stack->blocks->parameters();
    const auto in_block = [&](std::size_t i) { return is_in(of_blocks, weights_[i].tensor); };
    std::stable_partition(std::ranges::find_if(order_, in_block), order_.end(),
                          [&](std::size_t i) { return is_in(own, weights_[i].tensor) && !in_block(i); });
  }
}

void Shards::begin() {
  in_pass_ = true;
  ready_.assign(weights_.size(), false);
  left_ = weights_.size();
}

void Shards::send_ready() {
  for (; left_ > 0 && ready_[order_[left_ - 1]]; --left_) {
    const std::size_t i = order_[left_ - 1];
    const at::Tensor& weight = weights_[i].tensor;
    at::Tensor gradient = std::exchange(weight.mutable_grad(), at::Tensor());
    if (gradient.defined()) uses_[static_cast<std::int64_t>(i)] += 1;
    gradient = gradient.defined() ? gradient.contiguous() : at::zeros(weight.sizes(), weight.dtype());
    if (sums_.size() == kSumsOnTheirWay) finish_one();
    sums_.push_back({i, gradient, ranks_.begin_sum(gradient, weights_[i].owner)});
  }
}

void Shards::finish_one() {
  const Sum sum = std::move(sums_.front());
  sums_.pop_front();
  sum.wait();
  if (!owns(sum.weight)) return;
  at::Tensor& mean = means_[sum.weight];
  sum.gradient.div_(ranks_.size());
  if (mean.defined()) mean.add_(sum.gradient);
  else mean = sum.gradient;
}

void Shards::end(bool last) {
  const at::NoGradGuard no_grad;
  ready_.assign(weights_.size(), true);  // the others were not used
  send_ready();
  while (!sums_.empty()) finish_one();
  in_pass_ = false;
  if (!last) return;
  ranks_.add(uses_);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    at::Tensor mean = std::exchange(means_[i], at::Tensor());
    if (owns(i) && uses_[static_cast<std::int64_t>(i)].item<float>() > 0)
      weights_[i].tensor.mutable_grad() = std::move(mean);
  }
  uses_.zero_();
}

std::vector<std::size_t> Shards::apart_of(const std::vector<at::Tensor>& weights) const {
  std::vector<std::size_t> found;
  for (const at::Tensor& weight : weights)
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (apart_[i] && storage_of(weights_[i].tensor) == storage_of(weight)) found.push_back(i);
  return found;
}

void Shards::get(std::size_t i) {
  const at::Tensor& weight = weights_[i].tensor;
  if (!owns(i)) {
    storage_of(weight)->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(weight.nbytes()));
    storage_of(weight)->set_nbytes(weight.nbytes());
  }
  ranks_.broadcast(weight.variable_data(),
                   weights_[i].owner);  // a version of its own: autograd keeps weights
}

void Shards::free(std::size_t i) noexcept {
  if (owns(i)) return;
  c10::StorageImpl* const storage = storage_of(weights_[i].tensor);
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, c10::kCPU));
  storage->set_nbytes(std::size_t{0});
}

void Shards::take(const std::vector<at::Tensor>& weights) {
  const at::NoGradGuard no_grad;
  for (const std::size_t i : apart_of(weights)) get(i);
}

void Shards::give_back(const std::vector<at::Tensor>& weights) noexcept {
  at::autocast::clear_cache();  // of narrower copies
  for (const std::size_t i : apart_of(weights)) free(i);
}

Shards::Whole::Whole(Shards* shards) : shards_(shards) {
  if (shards_ == nullptr) return;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < shards_->weights_.size(); ++i) {
    if (!shards_->apart_[i]) continue;
    shards_->get(i);
    if (shards_->ranks_.rank() != 0) shards_->free(i);
  }
}

Shards::Whole::~Whole() {
  if (shards_ == nullptr) return;
  for (std::size_t i = 0; i < shards_->weights_.size(); ++i)
    if (shards_->apart_[i]) shards_->free(i);
}

}  // namespace zoo
