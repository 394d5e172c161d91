#pragma once

/// @file
/// Use:
///
///     const zoo::Encoding first = tokenizer.encode("to be", zoo::EncodeOptions{});
///     const zoo::Encoding second = tokenizer.encode("or not", zoo::EncodeOptions{});
///     const std::array<const zoo::Encoding*, 2> rows{&first, &second};
///     const zoo::ModelInputs inputs = zoo::batch_of(model, tokenizer, c10::kCPU, rows);

#include <filesystem>
#include <span>
#include <vector>

#include <c10/core/Device.h>

#include "models/model_io.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Pads the encodings at the end to one batch, with the model's pad_token_id if it has one, else the
/// tokenizer's; no mask if all have the same length.
ModelInputs batch_of(const Model& model, const Tokenizer& tokenizer, c10::Device device,
                     std::span<const Encoding* const> encodings);

/// Makes texts with an id outside the model's vocabulary an Error: some tokenizers have a token more (Gemma
/// 3, a [PAD] that somebody added). Throws Error naming the directory if the tokenizer has less than half as
/// many tokens as the vocabulary (padded vocabularies are a little larger than their tokenizer's).
void require_fit(Tokenizer& tokenizer, const TransformerConfig& config,
                 const std::filesystem::path& directory);

/// Order by length, longest first, so that batches need little padding.
std::vector<std::size_t> by_length(std::span<const Encoding> encodings);

}  // namespace zoo
