// Names and layouts of tensors: GGUF's and Hugging Face's.

#include <algorithm>
#include <sstream>

#include "models/formats/weight_table.h"
#include "models/gguf/gguf_architecture.h"

namespace zoo {
namespace {

// ".weight" or ".bias", and the numbers of the layer and the expert if the name has them.
struct NameParts {
  std::string pattern, suffix;
  std::int64_t layer = -1, expert = -1;
};

NameParts parts_of(const std::string& name) {
  NameParts parts;
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return parts;
  parts.suffix = name.substr(dot);
  std::istringstream segments(name.substr(0, dot));
  for (std::string segment; std::getline(segments, segment, '.');) {
    const bool digits =
        !segment.empty() && segment.size() < 10 &&
        std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits && parts.layer < 0) {
      parts.layer = std::stoll(segment);
      segment = "{}";
    } else if (digits && parts.pattern.ends_with(".experts")) {
      parts.expert = std::stoll(segment);
      segment = "{e}";
    }
    parts.pattern += (parts.pattern.empty() ? "" : ".") + segment;
  }
  return parts;
}

std::optional<GgufName> translated(const GgufArchitecture& architecture, const std::string& name,
                                   std::string GgufName::*from) {
  const NameParts parts = parts_of(name);
  for (const GgufName& entry : architecture.tensors) {
    if (entry.*from != parts.pattern) continue;
    const auto numbered = [&](const std::string& pattern) {
      return number_layer(pattern, parts.layer) + parts.suffix;
    };
    // Norms of 1 + w have no bias; a bias has no second dimension to transpose.
    const bool same = entry.layout == GgufLayout::kTransposed && parts.suffix != ".weight";
    return GgufName{numbered(entry.theirs), numbered(entry.ours), same ? GgufLayout::kSame : entry.layout,
                    parts.expert};
  }
  return std::nullopt;
}

// Swaps the two dimensions that the rows of a head have.
at::Tensor permuted(const at::Tensor& tensor, std::int64_t heads, std::int64_t inner) {
  return tensor.unflatten(0, {heads, -1, inner}).transpose(1, 2).flatten(0, 2);
}

}  // namespace

std::optional<GgufName> from_gguf_name(const GgufArchitecture& architecture, const std::string& theirs) {
  return translated(architecture, theirs, &GgufName::theirs);
}

std::optional<GgufName> to_gguf_name(const GgufArchitecture& architecture, const std::string& ours) {
  return translated(architecture, ours, &GgufName::ours);
}

at::Tensor from_gguf_layout(const at::Tensor& tensor, GgufLayout layout, std::int64_t heads) {
  if (is_by_head(layout)) return permuted(tensor, heads, 2);
  if (layout == GgufLayout::kPlusOne) return tensor.sub(1);
  return layout == GgufLayout::kTransposed ? tensor.t() : tensor;
}

at::Tensor to_gguf_layout(const at::Tensor& tensor, GgufLayout layout, std::int64_t heads) {
  if (is_by_head(layout)) return permuted(tensor, heads, tensor.size(0) / heads / 2);
  if (layout == GgufLayout::kPlusOne) return tensor.add(1);
  if (layout == GgufLayout::kRow) return tensor.squeeze(0);
  return layout == GgufLayout::kTransposed ? tensor.t() : tensor;
}

}  // namespace zoo
