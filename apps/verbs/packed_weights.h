#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/command/compute_options.h"
#include "apps/command/flags.h"
#include "models/generation/decoding_session.h"
#include "models/model.h"

namespace zoo {

/// How a model that only answers keeps its weights, and the keys and values of what it has read: the flags
/// --weights and, of verbs that decode, --cache.
struct PackedWeights {
  /// "auto" is --dtype's type where our own kernels serve the model, else "modules": LibTorch's operators.
  std::string weights = "auto";
  /// "auto" is float32 beside weights of float32, else bfloat16. Modules have none but it.
  std::string cache = "auto";

  void add_to(Flags& flags);
  void add_cache_to(Flags& flags);
};

/// A language model, ready for decoding; packing leaves `model` without its weights. Throws Error for weights
/// or a cache that its kind, or the device, does not have.
std::unique_ptr<DecodingModel> decoding_model(std::shared_ptr<Model> model, const ComputeOptions& compute,
                                              const PackedWeights& choice);

/// The same of a checkpoint directory.
std::unique_ptr<DecodingModel> load_decoding_model(const std::filesystem::path& directory,
                                                   const ComputeOptions& compute,
                                                   const PackedWeights& choice);

/// Packs the model's encoder as `choice` says, if it has one that can be.
void pack_encoder_of(Model& model, const ComputeOptions& compute, const PackedWeights& choice);

}  // namespace zoo
