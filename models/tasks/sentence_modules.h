#pragma once

/// @file
/// Use:
///
///     const zoo::SentenceModules modules = zoo::load_sentence_modules(config, {.normalize = true});
///     zoo::SentenceFeatures features{.tokens = states, .mask = mask};
///     for (const auto& module : modules) module.apply(features);  // gives features.sentence [B, D]

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/formats/safetensors.h"
#include "models/tasks/sentence_config.h"

namespace zoo {

/// Vector of a text from the states x [T, C] of its n tokens.
enum class PoolingMode {
  kCls,           ///< x[0]
  kMax,           ///< the largest of each column
  kMean,          ///< sum of x[i] / n
  kMeanSqrt,      ///< sum of x[i] / sqrt(n)
  kWeightedMean,  ///< sum of (i + 1) x[i], divided by the sum of i + 1
  kLastToken,     ///< x[n - 1]
};

/// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", in the order of the enum.
const std::vector<std::string>& pooling_names();
std::optional<PoolingMode> pooling_named(const std::string& name);

/// Data that the modules after the transformer read and write.
struct SentenceFeatures {
  at::Tensor tokens;               // [B, T, C], float32
  at::Tensor mask;                 // [B, T], 1: a token of the text, 0: padding at its end
  std::int64_t prompt_length = 0;  // tokens of the prompt at the beginning
  at::Tensor sentence;             // [B, D]
  bool normalizes = true;          // else a Normalize hands on what it reads
};

/// A module of Sentence-Transformers; a Dropout is left out.
struct SentenceModule {
  std::function<void(SentenceFeatures&)> apply;
  /// By their names in the files; apply() reads these very tensors, so that they can be trained.
  NamedTensors weights = {};
};
using SentenceModules = std::vector<SentenceModule>;

/// Vectors [..., D] divided by their lengths; a vector of zeros stays one.
at::Tensor unit_vectors(const at::Tensor& vectors);

struct SentenceModuleOptions {
  std::vector<PoolingMode> pooling;  // concatenated; empty: as the files say, else the mean
  /// True if vectors are scaled to length 1 at the end. None: as the files say, else true.
  std::optional<bool> normalize;
  c10::Device device = c10::kCPU;
};

/// Loads the modules that `config` lists; without any, pooling and normalization. Vectors are cut to its
/// truncate_dim, before options.normalize scales them. Throws Error naming the
/// file and the key, tensor or value that is missing or unknown.
SentenceModules load_sentence_modules(const SentenceConfig& config, const SentenceModuleOptions& options);

}  // namespace zoo
