#pragma once

#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "apps/command/compute_options.h"
#include "apps/command/flags.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/decoding_session.h"
#include "models/kernels/packed/packed_weight.h"
#include "models/model.h"

namespace zoo {

/// Storage formats of weights and KV cache for inference: the flag --weights and, for verbs that decode,
/// --cache.
struct PackedWeights {
  /// "auto": the type in which the directory holds packed weights; "gguf" for a GGUF file with quantized
  /// ones; else that of --dtype. Where our kernels do not support the model, "modules": LibTorch's operators.
  std::string weights = "auto";
  /// "auto": float32 with float32 weights, else bfloat16. Modules accept only "auto".
  std::string cache = "auto";

  void add_to(Flags& flags);
  void add_cache_to(Flags& flags);
};

/// Device of --device. Its "auto" is the CPU where the flags name weights or a cache that only packing has,
/// or the directory holds packed weights: their kernels run there alone.
c10::Device device_of(const ComputeOptions& compute, const PackedWeights& choice,
                      const CheckpointConfig& checkpoint);

/// True if the flags ask for packed weights, or the directory holds such: a model then loads with
/// LoadOptions::stored, so that only those weights are read into memory that are not packed. Throws Error if
/// the directory holds another type than the flags ask for.
bool packs(const CheckpointConfig& checkpoint, const ComputeOptions& compute, const PackedWeights& choice);

/// The type of this name; none for "auto", "modules" and others.
std::optional<kernels::WeightType> weight_type_named(const std::string& name);

/// A language model ready for decoding; packing releases the modules' weights. Throws Error for a format of
/// weights or cache that its kind or device does not support.
std::unique_ptr<DecodingModel> decoding_model(const LoadedModel& loaded, const ComputeOptions& compute,
                                              const PackedWeights& choice);

/// Reads a checkpoint that is to write text: one of a bare model, as BART is published, gets its family's
/// language model head, whose weights are the embedding or lie in the files too.
CheckpointConfig read_writing_checkpoint(const std::filesystem::path& directory);

/// Throws Error for the head of a model that writes no text.
void require_writes(const CheckpointConfig& checkpoint);

/// Loads a checkpoint for decoding. Throws Error as require_writes() does.
std::unique_ptr<DecodingModel> load_decoding_model(const CheckpointConfig& checkpoint,
                                                   const ComputeOptions& compute,
                                                   const PackedWeights& choice);

/// Makes a model ready for whole passes: on packed stacks as `choice` says, or as modules if no packing was
/// asked for or the kernels do not support it. Throws Error if `choice` names weights that only packing has,
/// or a cache.
void make_ready(const LoadedModel& loaded, const ComputeOptions& compute, const PackedWeights& choice);

/// Loads a directory's packed weights as inference does. Throws Error unless they fit config.json.
void check_packed_weights(const CheckpointConfig& checkpoint);

}  // namespace zoo
