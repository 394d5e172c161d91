#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "models/formats/safetensors.h"
#include "models/layers/linear.h"

namespace zoo {

/// Whether `name` fits a pattern, in which * stands for any text and ? for a letter.
bool fits(const std::string& pattern, const std::string& name);

/// Parameters whose names fit one of the patterns get no gradient. Returns their number. Throws Error naming
/// a pattern that fits none.
std::int64_t freeze(torch::nn::Module& module, const std::vector<std::string>& patterns);

/// Low-rank adapters (Hu et al., 2022): a projection W of the module is frozen and W + alpha / rank B A is
/// used, with A [rank, in] drawn and B [out, rank] zero at first. They are part of the module, as "lora", so
/// that an optimizer finds them.
class LoraAdapters : public torch::nn::Module {
 public:
  struct Options {
    std::int64_t rank = 8;
    double alpha = 16;
    std::vector<std::string> targets{"*attention*"};  // patterns of the projections' names
    std::vector<std::string> trains;  // patterns of other parameters that stay trained, of a fresh head say
    std::uint64_t seed = 0;
  };

  /// Freezes all of the module but `trains`. Throws Error naming the patterns if no projection fits.
  static std::shared_ptr<LoraAdapters> add_to(torch::nn::Module& module, const Options& options);

  /// While it lives, forward passes use the adapted weights; their graph outlives it. Of null it does
  /// nothing.
  class Scope {
   public:
    explicit Scope(LoraAdapters* adapters) : adapters_(adapters) {
      if (adapters_ != nullptr) adapters_->apply();
    }
    ~Scope() {
      if (adapters_ != nullptr) adapters_->restore();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LoraAdapters* adapters_;
  };

  /// While it lives, the module's own parameters hold the adapted weights, for saving it whole.
  class MergedScope {
   public:
    explicit MergedScope(LoraAdapters* adapters);
    ~MergedScope();
    MergedScope(const MergedScope&) = delete;
    MergedScope& operator=(const MergedScope&) = delete;

   private:
    LoraAdapters* adapters_;
    std::vector<at::Tensor> own_;
  };

  /// What stays trained beside it.
  const std::vector<std::string>& trains() const { return trains_; }

  /// Its parameters by name.
  NamedTensors state() const;
  /// Throws Error naming the file and the tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file);

 private:
  struct Adapted {
    std::shared_ptr<LinearImpl> projection;
    at::Tensor weight, a, b;  // weight: the frozen one
  };

  void adapt(const std::string& name, const std::shared_ptr<LinearImpl>& projection, at::Generator& generator,
             std::int64_t rank);
  at::Tensor adapted(const Adapted& one) const;
  void apply();
  void restore();

  double scale_ = 1;
  std::vector<std::string> trains_;
  std::vector<Adapted> all_;
};

}  // namespace zoo
