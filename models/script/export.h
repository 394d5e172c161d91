#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");
///     zoo::export_torchscript(*loaded.model, *loaded.family, loaded.head, "kjv.pt", {.eos_ids = {2}});
///     // Python: torch.jit.load("kjv.pt").generate(ids, 50, 0.8, 40)

#include <filesystem>
#include <optional>

#include "models/family.h"
#include "tokenizer/token_id.h"

namespace zoo {

struct ScriptOptions {
  TokenIds eos_ids;               // any of them ends a row of generate(); empty: none
  std::optional<TokenId> pad_id;  // fills ended rows; none, or outside the vocabulary: the first of eos_ids
};

/// Writes the model in its type as one TorchScript file, atomically. torch.jit.load or torch::jit::load
/// suffices to load it:
///
///   m(input_ids, attention_mask=None) -> logits, for attention_mask [B, T], 1 keeps, 0 hides; a pair of
///       start and end logits from a head that answers questions, last_hidden_state from a bare model.
///       Encoders with segments take token_type_ids=None after the mask.
///   m(input_ids, attention_mask, decoder_input_ids) -> the same of an encoder-decoder's decoder
///   m.generate(input_ids, max_new_tokens, temperature=1.0, top_k=0) -> new ids [B, n], of a head that
///       generates. An encoder-decoder's takes attention_mask=None at the end, without which the
///       configuration's pad_token_id is hidden.
///
/// with the conventions of Model::forward and generate(): positions are not derived from the mask;
/// temperature 0 is greedy and top_k 0 is off; n < max_new_tokens if every row has ended. Its attributes
/// `config` (JSON), `format_version`, `eos_ids` and `pad_id` describe it. It always computes in evaluation
/// mode and ignores its `training` attribute. Every expert computes every token, those that the router does
/// not choose with a weight of 0.
///
/// Throws Error for a family without parts(), a head that it lacks, what no traced pass can hold
/// (graph::forward_pass(), graph::decoding_passes()), and a file that cannot be written.
void export_torchscript(Model& model, const Family& family, Head head, const std::filesystem::path& file,
                        const ScriptOptions& options);

}  // namespace zoo
