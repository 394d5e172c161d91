#pragma once

/// @file
/// Use:
///
///     const zoo::GgufTensors tensors(zoo::GgufFile("model.gguf"));                // data/base/gguf_file.h
///     const at::Tensor embeddings = tensors.tensor("model.embed_tokens.weight");  // float32

#include <map>
#include <string>
#include <vector>

#include <c10/util/FunctionRef.h>

#include "models/formats/tensor_file.h"
#include "models/gguf/gguf_architecture.h"

namespace zoo {

/// The tensors of a GGUF file under Hugging Face's names and in its layout; quantized ones as float32.
/// A tensor that the architecture does not have keeps its name.
class GgufTensors : public TensorFile {
 public:
  explicit GgufTensors(const GgufFile& file);

  const std::vector<std::string>& names() const override { return names_; }
  bool contains(const std::string& name) const override { return sources_.count(name) != 0; }
  const TensorEntry& entry(const std::string& name) const override { return source(name).entry; }
  at::Tensor tensor(const std::string& name) const override;
  at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const override;
  at::Tensor columns(const std::string& name, std::int64_t begin, std::int64_t end) const override;
  bool has_blocks(const std::string& name, bool columns) const override;
  void append_blocks(const std::string& name, bool columns, std::int64_t begin, std::int64_t end,
                     BlockRows& rows) const override;
  void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const override;
  const std::filesystem::path& path() const override { return file_.path(); }

 private:
  struct Source {
    TensorEntry entry;
    const GgufFile::Tensor* tensor;
    GgufLayout layout;
    std::vector<std::int64_t> shape;  // of the stored rows; of an expert's matrix alone
    std::int64_t first_row = 0;       // of an expert's matrix among those of all
  };
  static std::size_t row_bytes(const Source& source);
  void add(std::string name, Source source);
  void add_experts(const std::string& name, const Source& all);
  const Source& source(const std::string& name) const;
  /// Heads that share the rows of a tensor.
  std::int64_t heads_of(const Source& source) const {
    return source.layout == GgufLayout::kKeyHeads ? kv_heads_ : heads_;
  }
  std::byte* row_data(const Source& source, std::int64_t row) const {
    return file_.data(*source.tensor) + static_cast<std::size_t>(source.first_row + row) * row_bytes(source);
  }
  /// Rows [begin, end) in Hugging Face's order from those that stored() gives in the file's.
  at::Tensor in_order(const Source& source, std::int64_t begin, std::int64_t end,
                      c10::function_ref<at::Tensor(std::int64_t first, std::int64_t last)> stored) const;
  /// Rows as the file has them.
  at::Tensor stored_rows(const Source& source, std::int64_t begin, std::int64_t end) const;

  GgufFile file_;
  std::int64_t heads_, kv_heads_;
  std::vector<std::string> names_;
  std::map<std::string, Source> sources_;
};

}  // namespace zoo
