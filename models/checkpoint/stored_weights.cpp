#include "models/checkpoint/stored_weights.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "data/base/field_error.h"
#include "data/base/mapped_file.h"
#include "models/checkpoint/packed_parts.h"
#include "models/checkpoint/weight_layout.h"
#include "models/model.h"

namespace zoo {

at::Tensor StoredWeight::read() const {
  std::vector<at::Tensor> parts;
  for (const std::string& theirs : name.theirs) parts.push_back(files->tensor(theirs));
  at::Tensor weight = from_stored_layout(name, std::move(parts)).to(dtype);
  if (weight.dim() == 3) weight = weight.flatten(0, 1);  // experts in one tensor
  for (const std::string& theirs : name.theirs) files->give_back(theirs);
  return weight;
}

WeightRows::WeightRows(StoredWeight stored, at::IntArrayRef shape)
    : shape_(shape.vec()), stored_(std::move(stored)) {
  // Every layout except the transposed one permutes complete rows; these are their numbers.
  const WeightName& name = stored_.name;
  std::vector<at::Tensor> places =
      at::arange(size(0)).unsqueeze(1).split_with_sizes(rows_of_names(name, size(0)));
  std::int64_t begin = 0;
  for (const at::Tensor& part : places) begins_.push_back(std::exchange(begin, begin + part.size(0)));
  if (transposed()) return;
  const at::Tensor order = from_stored_layout(name, std::move(places)).contiguous();
  const auto* data = order.const_data_ptr<std::int64_t>();
  order_.assign(data, data + order.numel());
}

bool WeightRows::transposed() const { return stored_.name.layout == WeightLayout::kTransposed; }

void WeightRows::each_run(std::int64_t begin, std::int64_t end,
                          c10::function_ref<void(const Run&)> visit) const {
  const auto place = [&](std::int64_t row) {
    return transposed() ? row : order_[static_cast<std::size_t>(row)];
  };
  for (std::int64_t row = begin, last = begin; row < end; row = last) {
    const std::int64_t first = place(row);
    const auto name = std::upper_bound(begins_.begin(), begins_.end(), first) - begins_.begin() - 1;
    const auto index = static_cast<std::size_t>(name);
    const std::int64_t after = index + 1 < begins_.size() ? begins_[index + 1] : size(0);
    for (last = row + 1; last < end && place(last) == first + last - row && place(last) < after;) ++last;
    visit({stored_.name.theirs[index], first - begins_[index], first - begins_[index] + last - row});
  }
}

at::Tensor WeightRows::rows(std::int64_t begin, std::int64_t end) const {
  if (tensor_.defined()) return tensor_.slice(0, begin, end);
  std::vector<at::Tensor> parts;
  each_run(begin, end, [&](const Run& run) {
    const TensorFile& file = stored_.files->file_of(run.name);
    parts.push_back(transposed() ? file.columns(run.name, run.begin, run.end)
                                 : file.rows(run.name, run.begin, run.end));
  });
  return (parts.size() == 1 ? parts[0] : at::cat(parts, 0)).to(stored_.dtype);
}

std::set<std::string> WeightRows::block_types(std::int64_t begin, std::int64_t end) const {
  std::set<std::string> types;
  if (tensor_.defined()) return types;
  bool all = true;
  each_run(begin, end, [&](const Run& run) {
    all = all && stored_.files->file_of(run.name).has_blocks(run.name, transposed());
    if (all) types.insert(stored_.files->entry(run.name).quantized);
  });
  return all ? types : std::set<std::string>();
}

std::string WeightRows::source() const {
  const std::string& name = stored_.name.theirs.front();
  return stored_.files->file_of(name).path().string() + ": tensor '" + name + "'";
}

BlockRows WeightRows::blocks(std::int64_t begin, std::int64_t end) const {
  BlockRows rows;
  each_run(begin, end, [&](const Run& run) {
    stored_.files->file_of(run.name).append_blocks(run.name, transposed(), run.begin, run.end, rows);
  });
  return rows;
}

void WeightRows::give_back(std::int64_t begin, std::int64_t end) const {
  const bool all = begin == 0 && end == size(0);
  if (tensor_.defined()) {
    const at::Tensor rows = tensor_.slice(0, begin, end);
    if (rows.is_contiguous() || rows.t().is_contiguous())
      MappedFile::give_back(rows.const_data_ptr(), static_cast<std::size_t>(rows.nbytes()));
  } else if (all) {
    for (const std::string& theirs : stored_.name.theirs) stored_.files->give_back(theirs);
  } else if (!transposed()) {  // a column shares its pages with all others
    each_run(begin, end, [&](const Run& run) { stored_.files->give_back(run.name, run.begin, run.end); });
  }
}

void StoredWeights::add(const at::Tensor& parameter, StoredWeight stored) {
  entries_.emplace(parameter.unsafeGetTensorImpl(), Entry{parameter, std::move(stored)});
}

bool StoredWeights::contains(const at::Tensor& parameter) const {
  return entries_.contains(parameter.unsafeGetTensorImpl());
}

bool StoredWeights::has_blocks() const {
  return std::ranges::any_of(entries_, [](const auto& entry) {
    const StoredWeight& stored = entry.second.stored;
    return std::ranges::any_of(stored.name.theirs, [&](const std::string& name) {
      return stored.files->entry(name).quantized != nullptr;
    });
  });
}

WeightRows StoredWeights::rows_of(const at::Tensor& parameter) const {
  const auto found = entries_.find(parameter.unsafeGetTensorImpl());
  if (found == entries_.end()) return WeightRows(parameter);
  return {found->second.stored, parameter.sizes()};
}

void StoredWeights::load(at::Tensor parameter) const {
  const auto found = entries_.find(parameter.unsafeGetTensorImpl());
  if (found != entries_.end()) parameter.set_data(found->second.stored.read());
}

void StoredWeights::load_all() const {
  if (packed_) packed_->refuse_modules();
  for (const auto& [impl, entry] : entries_) load(entry.parameter);
}

void require_weights(const Model& model) {
  for (const auto& entry : model.named_parameters()) {
    // One number stands for all of such a weight.
    if (entry.value().storage().nbytes() < entry.value().nbytes())
      throw FieldError(Field{"weights"}, ": '", entry.key(),
                       "' is packed or in a file; to write the model, load it with ", Field{"weights"},
                       " modules");
  }
}

}  // namespace zoo
