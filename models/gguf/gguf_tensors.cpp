#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/FunctionRef.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "models/formats/config_reader.h"
#include "models/formats/weight_table.h"
#include "models/gguf/gguf_architecture.h"
#include "models/gguf/gguf_blocks.h"

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
    const auto number = segment.size() < 10 ? number_in<std::uint32_t>(segment) : std::nullopt;
    if (number && parts.layer < 0) {
      parts.layer = *number;
      segment = "{}";
    } else if (number && parts.pattern.ends_with(".experts")) {
      parts.expert = *number;
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

// `heads` is the number of the query's or key's heads.
at::Tensor from_gguf_layout(const at::Tensor& tensor, GgufLayout layout, std::int64_t heads) {
  if (is_by_head(layout)) return permuted(tensor, heads, 2);
  if (layout == GgufLayout::kPlusOne) return tensor.sub(1);
  return layout == GgufLayout::kTransposed ? tensor.t() : tensor;
}

class GgufTensors : public TensorFile {
 public:
  explicit GgufTensors(const GgufFile& file) : file_(file) {
    const GgufArchitecture& architecture = architecture_of(file);
    const nlohmann::json metadata = architecture_metadata(file);
    const ConfigReader reader(metadata, path().string());
    const std::string prefix = std::string(architecture.name) + ".attention.head_count";
    heads_ = reader.require_int(prefix.c_str());
    kv_heads_ = reader.get_int((prefix + "_kv").c_str(), heads_);
    for (const GgufFile::Tensor& tensor : file_.tensors()) {
      if (tensor.name == "rope_freqs.weight") continue;  // config_of reads it
      const auto name = translated(architecture, tensor.name, &GgufName::theirs);
      TensorEntry entry{.dtype = at::kFloat, .shape = tensor.shape};
      if (name && name->layout == GgufLayout::kRow && entry.shape.size() == 1)
        entry.shape.insert(entry.shape.begin(), 1);
      const std::string type = tensor.type->name;
      if (tensor.type->block > 1) entry.quantized = tensor.type->name;
      if (type == "F16") entry.dtype = at::kHalf;
      if (type == "BF16") entry.dtype = at::kBFloat16;
      if (type == "F64") entry.dtype = at::kDouble;
      const Source source{&tensor, name ? name->layout : GgufLayout::kSame, entry.shape, entry.dtype};
      const std::int64_t heads = heads_of(source);
      if (is_by_head(source.layout) && (heads <= 0 || tensor.shape.front() % (2 * heads) != 0))
        throw Error(path(), ": tensor '", tensor.name, "' has ", tensor.shape.front(), " rows, which ", heads,
                    " heads do not share evenly");
      if (source.layout == GgufLayout::kTransposed) std::ranges::reverse(entry.shape);
      if (source.layout == GgufLayout::kExperts) add_experts(name->ours, entry, source);
      else add(name ? name->ours : tensor.name, entry, source);
    }
  }

  at::Tensor tensor(const std::string& name) const override {
    const Source& source = sources_.at(name);
    return from_gguf_layout(stored_rows(source, 0, source.shape.front()), source.layout, heads_of(source));
  }

  at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    const Source& source = sources_.at(name);
    if (source.layout == GgufLayout::kTransposed) return tensor(name).slice(0, begin, end);
    return in_order(source, begin, end,
                    [&](std::int64_t first, std::int64_t last) { return stored_rows(source, first, last); });
  }

  at::Tensor columns(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    const Source& source = sources_.at(name);
    if (source.layout == GgufLayout::kTransposed) return stored_rows(source, begin, end);
    return TensorFile::columns(name, begin, end);
  }

  bool has_blocks(const std::string& name, bool columns) const override {
    const Source& source = sources_.at(name);
    return source.tensor->type->block > 1 && columns == (source.layout == GgufLayout::kTransposed) &&
           source.layout != GgufLayout::kPlusOne && source.shape.size() == 2;
  }

  void append_blocks(const std::string& name, bool, std::int64_t begin, std::int64_t end,
                     BlockRows& rows) const override {
    const Source& source = sources_.at(name);
    const GgufType& type = *source.tensor->type;
    const auto append = [&](std::int64_t row, std::int64_t count) {
      zoo::append_blocks(type, row_data(source, row),
                         static_cast<std::size_t>(count) * row_bytes(source) / type.bytes, rows);
    };
    if (!is_by_head(source.layout)) return append(begin, end - begin);
    const at::Tensor places = in_order(source, begin, end, [](std::int64_t first, std::int64_t last) {
      return at::arange(first, last).unsqueeze(1);
    });
    for (std::int64_t i = 0; i < end - begin; ++i) append(places[i].item<std::int64_t>(), 1);
  }

  void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    const Source& source = sources_.at(name);
    const GgufFile::Tensor& tensor = *source.tensor;
    if (source.layout == GgufLayout::kTransposed)
      return MappedFile::give_back(file_.data(tensor), tensor.end - tensor.begin);
    const std::size_t row = row_bytes(source);
    MappedFile::give_back(row_data(source, begin), static_cast<std::size_t>(end - begin) * row);
  }

  const std::filesystem::path& path() const override { return file_.path(); }

 private:
  struct Source {
    const GgufFile::Tensor* tensor;
    GgufLayout layout;
    std::vector<std::int64_t> shape;  // of the stored rows; of an expert's matrix alone
    at::ScalarType dtype;
    std::int64_t first_row = 0;  // of an expert's matrix among those of all
  };

  static std::size_t row_bytes(const Source& source) {
    const GgufFile::Tensor& tensor = *source.tensor;
    const std::int64_t matrices = tensor.shape.size() == 3 ? tensor.shape.front() : 1;
    const std::int64_t rows = std::max<std::int64_t>(matrices * source.shape.front(), 1);
    return (tensor.end - tensor.begin) / static_cast<std::size_t>(rows);
  }

  void add(const std::string& name, const TensorEntry& entry, const Source& source) {
    TensorFile::add(name, entry);
    sources_.emplace(name, source);
  }

  void add_experts(const std::string& name, TensorEntry entry, const Source& all) {
    constexpr std::int64_t kMost = 65'536;
    const std::vector<std::int64_t>& shape = all.tensor->shape;
    if (shape.size() != 3 || shape.front() > kMost)
      throw Error(path(), ": tensor '", all.tensor->name, "' must be [experts, rows, columns] with at most ",
                  kMost, " experts");
    const std::size_t place = name.find("{e}");
    for (std::int64_t e = 0; e < shape.front(); ++e) {
      Source one = all;
      entry.shape = one.shape = {shape[1], shape[2]};
      one.layout = GgufLayout::kSame;
      one.first_row = e * shape[1];
      add(name.substr(0, place) + std::to_string(e) + name.substr(place + 3), entry, one);
    }
  }

  // Heads that share the rows of a tensor.
  std::int64_t heads_of(const Source& source) const {
    return source.layout == GgufLayout::kKeyHeads ? kv_heads_ : heads_;
  }

  std::byte* row_data(const Source& source, std::int64_t row) const {
    return file_.data(*source.tensor) + static_cast<std::size_t>(source.first_row + row) * row_bytes(source);
  }

  // Rows [begin, end) in Hugging Face's order from those that stored() gives in the file's.
  at::Tensor in_order(const Source& source, std::int64_t begin, std::int64_t end,
                      c10::function_ref<at::Tensor(std::int64_t first, std::int64_t last)> stored) const {
    // A head's rows change places among themselves: whole heads are read.
    const std::int64_t unit = is_by_head(source.layout) ? source.tensor->shape.front() / heads_of(source) : 1;
    const std::int64_t first = begin / unit * unit, last = (end + unit - 1) / unit * unit;
    return from_gguf_layout(stored(first, last), source.layout, (last - first) / unit)
        .slice(0, begin - first, end - first);
  }

  // Rows as the file has them.
  at::Tensor stored_rows(const Source& source, std::int64_t begin, std::int64_t end) const {
    const GgufFile::Tensor& tensor = *source.tensor;
    std::byte* data = row_data(source, begin);
    std::vector<std::int64_t> shape = source.shape;
    shape.front() = end - begin;
    if (tensor.type->block > 1) return dequantized(*tensor.type, data, shape);
    const auto keep_mapped = [file = file_.file()](void*) {};
    return at::from_blob(data, shape, keep_mapped, at::TensorOptions().dtype(source.dtype));
  }

  GgufFile file_;
  std::int64_t heads_, kv_heads_;
  std::map<std::string, Source> sources_;
};

}  // namespace

std::optional<GgufName> to_gguf_name(const GgufArchitecture& architecture, const std::string& ours) {
  return translated(architecture, ours, &GgufName::ours);
}

at::Tensor to_gguf_layout(const at::Tensor& tensor, GgufLayout layout, std::int64_t heads) {
  if (is_by_head(layout)) return permuted(tensor, heads, tensor.size(0) / heads / 2);
  if (layout == GgufLayout::kPlusOne) return tensor.add(1);
  if (layout == GgufLayout::kRow) return tensor.squeeze(0);
  return layout == GgufLayout::kTransposed ? tensor.t() : tensor;
}

std::unique_ptr<TensorFile> gguf_tensors(const GgufFile& file) { return std::make_unique<GgufTensors>(file); }

}  // namespace zoo
