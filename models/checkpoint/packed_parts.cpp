#include "models/checkpoint/packed_parts.h"

#include <algorithm>

#include <c10/util/StringUtil.h>

#include "data/base/error.h"
#include "data/base/mapped_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/formats/safetensors.h"
#include "models/model.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string shape_text(at::ScalarType dtype, at::IntArrayRef shape) {
  return c10::str(safetensors_name(dtype), " ", shape);
}

}  // namespace

bool PackedParts::exist_in(const fs::path& directory) { return fs::exists(directory / kFile); }

PackedParts::PackedParts(const fs::path& directory) : directory_(directory), path_(directory / kFile) {
  auto file = std::make_unique<const SafetensorsFile>(path_);
  const auto says = [&](const char* key) {
    const auto found = file->metadata().find(key);
    return found == file->metadata().end() ? std::string() : found->second;
  };
  if (says("format") != kFormat)
    throw Error(path_, ": its header does not say that it holds packed weights; expected a file that 'tzoo ",
                "export --format packed' wrote");
  weights_ = says("weights");
  source_ = says("source");
  if (const std::string adapter = says("adapter"); !adapter.empty()) adapter_ = " --adapter " + adapter;
  if (says("layout") != kLayout)
    throw Error(path_, ": has layout '", says("layout"), "' of packed weights, and this tzoo reads layout ",
                kLayout, "; renew it: tzoo export --model ", source_.empty() ? "DIR" : source_, adapter_,
                " --format packed --weights ", weights_, says("calibration").empty() ? "" : " --calibration ",
                says("calibration"), " --output ", directory.string());
  files_ = std::make_shared<const WeightFiles>(std::move(file));
}

bool PackedParts::has(const std::string& prefix) const {
  return std::ranges::any_of(files_->names(), [&](const auto& name) { return name.starts_with(prefix); });
}

LoadReport PackedParts::load(Model& model, const CheckpointConfig& checkpoint, StoredWeights& stored,
                             at::ScalarType dtype) {
  LoadReport report;
  const bool other_head = checkpoint.head != checkpoint.own_head;
  if (checkpoint.head == Head::kBase && !has("pooler.")) model.remove_pooler();
  const auto parameters = model.named_parameters();
  for (auto& [name, weight] : weights_in(model, checkpoint.family->weight_table(checkpoint.config))) {
    names_[weight.unsafeGetTensorImpl()] = name;
    if (!files_->contains(name)) {
      if (!has(name + ".packed")) (other_head ? report.fresh : report.missing).push_back(name);
      continue;
    }
    beside_.insert(name);
    const TensorEntry& entry = files_->entry(name);
    if (entry.shape != weight.sizes().vec() || !at::isFloatingType(entry.dtype)) {
      report.mismatched.push_back(name + ": expected " + shape_text(at::kFloat, weight.sizes()) + ", found " +
                                  shape_text(entry.dtype, entry.shape));
      continue;
    }
    StoredWeight read{{.ours = name, .theirs = {name}}, files_, dtype};
    if (weight.dim() == 2 && parameters.contains(name)) {
      stored.add(weight, std::move(read));
    } else {
      weight.set_data(read.read());
    }
    report.loaded.push_back(name);
  }
  for (const std::string& name : files_->names()) {
    // Packed parts outside of stacks are the projection of another head.
    const bool in_stack = name.starts_with("stack.") && name.find(".packed") != std::string::npos;
    if (other_head && !in_stack && beside_.insert(name).second) report.unused.push_back(name);
  }
  if (!report.good()) throw Error("the weights do not fit the model: ", report.faults());
  return report;
}

at::Tensor PackedParts::take(const at::Tensor& parameter, const std::string& ending, at::ScalarType dtype,
                             at::IntArrayRef shape) const {
  const auto weight = names_.find(parameter.unsafeGetTensorImpl());
  TORCH_CHECK(weight != names_.end(), "a weight that no table names cannot be read packed");
  const std::string name = weight->second + ending;
  if (!files_->contains(name)) throw Error(path_, ": the packed weight ", name, " is missing");
  const TensorEntry& entry = files_->entry(name);
  if (entry.dtype != dtype || entry.shape != shape)
    throw Error(path_, ": the packed weight ", name, " does not fit config.json: expected ",
                shape_text(dtype, shape), ", found ", shape_text(entry.dtype, entry.shape));
  taken_.insert(name);
  at::Tensor view = files_->tensor(name);
  MappedFile::prefer_large_pages(view.const_data_ptr(), view.nbytes());
  return view;
}

void PackedParts::require_all_taken() const {
  std::vector<std::string> left;
  for (const std::string& name : files_->names())
    if (!beside_.contains(name) && !taken_.contains(name)) left.push_back(name);
  if (!left.empty())
    throw Error(path_, ": holds what the model of config.json does not have: ",
                LoadReport{.unexpected = left}.faults());
}

void PackedParts::refuse_modules() const {
  throw Error(directory_,
              " holds weights packed for inference, which modules do not read; expected the model ",
              "that they were exported from", source_.empty() ? "" : ", ", source_, adapter_);
}

}  // namespace zoo
