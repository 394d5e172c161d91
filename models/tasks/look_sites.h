#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/layers/interventions.h"
#include "models/model_io.h"

namespace zoo {

namespace analysis {
enum class Ablation;  // models/analysis/sweep.h
}

/// Kinds of parts: "residual", "attention", "cross_attention", "feed_forward", "head",
/// "cross_head". site_kind() takes "layer" for the first.
struct SiteKind {
  LayerPart part = LayerPart::kResidual;
  bool heads = false;
};
const std::vector<std::string>& site_kind_names();
SiteKind site_kind(const std::string& name);

/// Configuration of the encoder or decoder, by name; without a name of the one whose states the head reads.
/// Throws UnfitField naming `stack` for one that the model lacks.
TransformerConfig stack_of(const Model& model, const std::optional<std::string>& name);

/// Parts of a stack, with commas between: layers "3", heads "3.5" (layer, head), sublayers "3.attention".
struct SiteNames {
  std::vector<std::string> layers, sublayers, heads, cross_heads;
};

/// Throws UnfitField naming `field`, which is `word`, for a cross-attention that the stack lacks.
void check_part(const std::string& field, const std::string& word, LayerPart part,
                const TransformerConfig& stack);

/// "zero" or "mean". Throws UnfitField naming `with` for another name, and for the mean of a whole layer.
analysis::Ablation ablation_named(const std::string& name, const std::vector<Site>& sites);

/// Throws UnfitField naming the member with a part that the stack lacks.
std::vector<Site> named_sites(const SiteNames& names, const TransformerConfig& stack);

/// Positions "2,5" below `length`, each once, in ascending order. Throws UnfitField naming `positions`.
std::vector<std::int64_t> position_list(const std::vector<std::string>& texts, std::int64_t length);

}  // namespace zoo
