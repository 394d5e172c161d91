#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/layers/interventions.h"
#include "models/model.h"

namespace zoo {

/// Kinds of parts that flags name: "residual", "attention", "cross_attention", "feed_forward", "head",
/// "cross_head". site_kind() takes "layer" for the first.
struct SiteKind {
  LayerPart part = LayerPart::kResidual;
  bool heads = false;
};
const std::vector<std::string>& site_kind_names();
SiteKind site_kind(const std::string& name);

/// Configuration of the stack that --stack names; without a name of the one whose states the head reads.
/// Throws Error naming --stack for one that the model lacks.
TransformerConfig stack_of(const Model& model, const std::optional<std::string>& name);

/// Sites as flags list them, separated by commas: layers "3", heads "3.5" (layer, head) and sublayers
/// "3.attention". Throws Error naming the flag for one that the stack lacks.
std::vector<Site> layer_sites(const std::vector<std::string>& texts, const TransformerConfig& stack);
std::vector<Site> head_sites(const std::string& flag, const std::vector<std::string>& texts, LayerPart part,
                             const TransformerConfig& stack);
std::vector<Site> sublayer_sites(const std::vector<std::string>& texts, const TransformerConfig& stack);

/// Positions "2,5" of a sequence of `length` tokens, each once, in ascending order.
std::vector<std::int64_t> position_list(const std::vector<std::string>& texts, std::int64_t length);

}  // namespace zoo
