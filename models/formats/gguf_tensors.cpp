#include "models/formats/gguf_tensors.h"

#include <algorithm>

#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/formats/config_reader.h"
#include "models/formats/gguf_blocks.h"

namespace zoo {

GgufTensors::GgufTensors(const GgufFile& file) : file_(file) {
  const GgufArchitecture& architecture = architecture_of(file);
  const ConfigReader reader(file.metadata(), path().string());
  const std::string prefix = std::string(architecture.name) + ".attention.head_count";
  heads_ = reader.require_int(prefix.c_str());
  kv_heads_ = reader.get_int((prefix + "_kv").c_str(), heads_);
  for (const GgufFile::Tensor& tensor : file_.tensors()) {
    if (tensor.name == "rope_freqs.weight") continue;  // config_of reads it
    const auto name = from_gguf_name(architecture, tensor.name);
    Source source{{at::kFloat, tensor.shape}, &tensor, name ? name->layout : GgufLayout::kSame};
    const std::string type = tensor.type->name;
    if (tensor.type->block > 1) source.entry.quantized = tensor.type->name;
    if (type == "F16") source.entry.dtype = at::kHalf;
    if (type == "BF16") source.entry.dtype = at::kBFloat16;
    if (type == "F64") source.entry.dtype = at::kDouble;
    const bool by_head = source.layout == GgufLayout::kQueryHeads || source.layout == GgufLayout::kKeyHeads;
    const std::int64_t heads = source.layout == GgufLayout::kKeyHeads ? kv_heads_ : heads_;
    if (by_head && (heads <= 0 || tensor.shape.front() % (2 * heads) != 0))
      throw Error(path(), ": tensor '", tensor.name, "' has ", tensor.shape.front(), " rows, which ", heads,
                  " heads do not share evenly");
    if (source.layout == GgufLayout::kTransposed)
      std::reverse(source.entry.shape.begin(), source.entry.shape.end());
    names_.push_back(name ? name->ours : tensor.name);
    sources_.emplace(names_.back(), std::move(source));
  }
}

const GgufTensors::Source& GgufTensors::source(const std::string& name) const {
  const auto found = sources_.find(name);
  if (found == sources_.end()) throw Error(path(), ": there is no tensor '", name, "'");
  return found->second;
}

at::Tensor GgufTensors::tensor(const std::string& name) const {
  const auto& [entry, tensor, layout] = source(name);
  at::Tensor numbers;
  if (tensor->type->block > 1) {
    numbers = dequantized(*tensor->type, file_.data(*tensor), tensor->shape);
  } else {
    const auto keep_mapped = [file = file_.file()](void*) {};
    numbers = at::from_blob(file_.data(*tensor), tensor->shape, keep_mapped,
                            at::TensorOptions().dtype(entry.dtype));
  }
  return from_gguf_layout(numbers, layout, layout == GgufLayout::kKeyHeads ? kv_heads_ : heads_);
}

}  // namespace zoo
