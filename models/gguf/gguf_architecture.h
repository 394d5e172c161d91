#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include "data/base/gguf_file.h"
#include "models/formats/tensor_file.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// Difference between a weight in GGUF and in Hugging Face's checkpoint. kQueryHeads, kKeyHeads: rows of each
/// head [D] are [2, D / 2] here and [D / 2, 2] there, for rotary positions of neighbours. kPlusOne: a norm of
/// 1 + w. kTransposed: [out, in] here. kExperts: one tensor [E, out, in] of all experts, a matrix for each
/// there. kRow: [in] here, [1, in] there.
enum class GgufLayout { kSame, kQueryHeads, kKeyHeads, kPlusOne, kTransposed, kExperts, kRow };

inline bool is_by_head(GgufLayout layout) {
  return layout == GgufLayout::kQueryHeads || layout == GgufLayout::kKeyHeads;
}

/// A tensor's name in GGUF and in Hugging Face's checkpoint, without ".weight" or ".bias"; "{}" stands for
/// the layer's number, "{e}" for the expert's, which `expert` is in a translation of a name that has one.
struct GgufName {
  std::string theirs, ours;
  GgufLayout layout = GgufLayout::kSame;
  std::int64_t expert = -1;
};

/// A number of the metadata, after "ARCHITECTURE.", and the key of config.json.
struct GgufKey {
  const char *theirs, *ours;
  bool required = true;
};

/// An architecture of GGUF: it names a family and translates keys and tensors, so that the family's own
/// tables read them.
struct GgufArchitecture {
  const char *name, *model_type, *head_class;
  std::vector<GgufKey> keys;
  std::vector<GgufName> tensors;
  const char* marker = nullptr;  // a tensor that tells this one from a later one of the same name
};

const std::vector<GgufArchitecture>& gguf_architectures();

/// The architecture of the file. Throws Error naming one that the zoo does not have.
const GgufArchitecture& architecture_of(const GgufFile& file);

/// The keys that begin with the architecture's name. Newer files have a list with a number for each layer in
/// place of some numbers: the number where all are equal.
nlohmann::json architecture_metadata(const GgufFile& file);

/// The config.json of Hugging Face that says the same as the metadata. Throws Error naming the key that is
/// missing, wrong or unknown: each key of the architecture may change numbers.
nlohmann::json config_of(const GgufFile& file);

/// The divisors of `count` rotary frequencies that Llama 3 uses (Dubey et al., 2024), as GGUF stores them.
std::vector<double> llama3_divisors(const RopeScaling& scaling, double theta, std::size_t count);

/// Translation of Hugging Face's name of a tensor; nothing if the architecture does not have it.
std::optional<GgufName> to_gguf_name(const GgufArchitecture& architecture, const std::string& ours);

/// `heads` is the number of the query's or key's heads.
at::Tensor to_gguf_layout(const at::Tensor& tensor, GgufLayout layout, std::int64_t heads);

/// The tensors of a GGUF file under Hugging Face's names and in its layout; quantized ones as float32.
/// A tensor that the architecture does not have keeps its name.
std::unique_ptr<TensorFile> gguf_tensors(const GgufFile& file);

}  // namespace zoo
