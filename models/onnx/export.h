#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");
///     zoo::export_onnx(*loaded.model, "folder");  // an existing directory
///     // Python: onnxruntime.InferenceSession("folder/model.onnx")

#include <filesystem>

#include "models/model.h"

namespace zoo {

/// Writes the model's passes into an existing directory as files of ONNX (opset 20) with the names that
/// Hugging Face's Optimum reads, in the model's type (float32 or float16), for any batch B and length T:
///
/// - model.onnx of an encoder, or of a decoder that does not generate: (input_ids, attention_mask,
///   token_type_ids if the model has segments) int64 [B, T] -> exported_outputs().
/// - model.onnx of a decoder: (input_ids, attention_mask [B, P + T], position_ids,
///   past_key_values.N.key and .value [B, Hkv, P, D]) -> logits [B, T, V], present.N.key and .value.
/// - encoder_model.onnx, decoder_model.onnx and decoder_with_past_model.onnx of an encoder-decoder.
///
/// Throws Error naming what has no translation, or a file that cannot be written.
void export_onnx(Model& model, const std::filesystem::path& directory);

}  // namespace zoo
