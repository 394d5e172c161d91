#pragma once

/// @file
/// Use:
///
///     const auto tensors = zoo::gguf_tensors(zoo::GgufFile("model.gguf"));         // data/base/gguf_file.h
///     const at::Tensor embeddings = tensors->tensor("model.embed_tokens.weight");  // float32

#include <memory>

#include "models/formats/tensor_file.h"
#include "models/gguf/gguf_architecture.h"

namespace zoo {

/// The tensors of a GGUF file under Hugging Face's names and in its layout; quantized ones as float32.
/// A tensor that the architecture does not have keeps its name.
std::unique_ptr<TensorFile> gguf_tensors(const GgufFile& file);

}  // namespace zoo
