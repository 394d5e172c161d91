#pragma once

/// @file
/// Use:
///
///     const zoo::GgufMetadata no_tokenizer;
///     zoo::save_gguf(*loaded.model, *loaded.family, loaded.head, "model.gguf", "Q8_0", no_tokenizer);
///     zoo::save_gguf_adapter(zoo::PeftAdapter("adapter"), checkpoint, "adapter.gguf", "F32");

#include <filesystem>
#include <string>

#include "data/base/gguf_writer.h"
#include "models/checkpoint/peft_adapter.h"
#include "models/family.h"

namespace zoo {

/// Writes the model as a GGUF file for llama.cpp, atomically: matrices in the type ("F32", "F16", "BF16",
/// "Q8_0" or "Q4_0"; F16 if their rows are no multiple of its block), the rest as float32. `tokenizer` is
/// also metadata. Throws FieldError for another type, Error naming the family that GGUF lacks, or each field
/// of the configuration that the metadata cannot express: the file is read again and compared.
void save_gguf(const Model& model, const Family& family, Head head, const std::filesystem::path& path,
               const std::string& type, const GgufMetadata& tokenizer);

/// Writes an adapter of the base as llama.cpp reads it beside the base's GGUF file (--lora): the matrices A
/// and B of each weight in the type, with the one alpha that gives their scales. Throws Error naming what
/// such a file does not hold: magnitudes of DoRA, embeddings, whole tensors, experts.
void save_gguf_adapter(const PeftAdapter& adapter, const CheckpointConfig& base,
                       const std::filesystem::path& path, const std::string& type);

}  // namespace zoo
