#pragma once

#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "models/checkpoint/checkpoint.h"
#include "models/generation/decoding_session.h"
#include "models/inference/packed_engine.h"
#include "models/tasks/compute_options.h"

namespace zoo {

/// LibTorch's device. Throws FieldError if the CUDA device does not exist, UnfitField as ComputeOptions says.
c10::Device device_of(const ComputeOptions& compute);

/// The same for a checkpoint: "auto" is the CPU where the options name weights or a cache that only packing
/// has, or the directory holds packed weights, since their kernels run there alone.
c10::Device device_of(const ComputeOptions& compute, const CheckpointConfig& checkpoint);

c10::ScalarType dtype_of(const ComputeOptions& compute);

/// The type of this name; none for "auto", "modules" and others.
std::optional<kernels::WeightType> weight_type_named(const std::string& name);

/// True if the options ask for packed weights, or the directory holds such: a model then loads with
/// LoadOptions::stored, so that only those weights are read into memory that are not packed. Throws
/// FieldError if the directory holds another type than the options ask for.
bool packs(const CheckpointConfig& checkpoint, const ComputeOptions& compute);

/// A language model ready for decoding; packing releases the modules' weights. Throws FieldError for a format
/// of weights or cache that its kind or device does not support.
std::unique_ptr<DecodingModel> decoding_model(const LoadedModel& loaded, const ComputeOptions& compute);

/// Reads a checkpoint that is to write text: one of a bare model, as BART is published, gets its family's
/// language model head, whose weights are the embedding or lie in the files too.
CheckpointConfig read_writing_checkpoint(const ModelPath& directory);

/// Throws Error unless the head of the checkpoint in `directory` is one of `expected`.
void require_head(const ModelPath& directory, Head head, std::initializer_list<Head> expected);

/// Throws Error for the head of a model that writes no text.
void require_writes(const CheckpointConfig& checkpoint);

/// Loads a checkpoint for decoding. Throws Error as require_writes() does.
std::unique_ptr<DecodingModel> load_decoding_model(const CheckpointConfig& checkpoint,
                                                   const ComputeOptions& compute);

/// Makes a model ready for whole passes: on packed stacks as the options say, or as modules if no packing was
/// asked for or the kernels do not support it. Throws FieldError for weights of packing alone, and a cache.
void make_ready(const LoadedModel& loaded, const ComputeOptions& compute);

/// Loads a directory's packed weights as inference does. Throws Error unless they fit config.json.
void check_packed_weights(const CheckpointConfig& checkpoint);

}  // namespace zoo
