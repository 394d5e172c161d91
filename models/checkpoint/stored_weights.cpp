#include "models/checkpoint/stored_weights.h"

#include <algorithm>

#include <ATen/ops/cat.h>

#include "data/base/mapped_file.h"
#include "models/checkpoint/weight_layout.h"

namespace zoo {

at::Tensor StoredWeight::read() const {
  std::vector<at::Tensor> parts;
  for (const std::string& theirs : name.theirs) parts.push_back(files->tensor(theirs));
  const at::Tensor weight = from_stored_layout(name, std::move(parts)).to(dtype);
  for (const std::string& theirs : name.theirs) files->give_back(theirs);
  return weight;
}

WeightRows::WeightRows(StoredWeight stored, at::IntArrayRef shape)
    : shape_(shape.vec()), stored_(std::move(stored)), begins_{0} {
  if (stored_.name.layout != WeightLayout::kSame) {  // its rows are not those of the files
    tensor_ = stored_.read();
    return;
  }
  for (const std::int64_t count : rows_of_names(stored_.name, shape_.front()))
    begins_.push_back(begins_.back() + count);
}

at::Tensor WeightRows::rows(std::int64_t begin, std::int64_t end) const {
  if (tensor_.defined()) return tensor_.slice(0, begin, end);
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
    const std::int64_t first = std::max(begin, begins_[i]), last = std::min(end, begins_[i + 1]);
    if (first < last)
      parts.push_back(stored_.files->rows(stored_.name.theirs[i], first - begins_[i], last - begins_[i]));
  }
  return (parts.size() == 1 ? parts[0] : at::cat(parts, 0)).to(stored_.dtype);
}

void WeightRows::give_back(std::int64_t begin, std::int64_t end) const {
  if (tensor_.defined()) {
    const at::Tensor rows = tensor_.slice(0, begin, end);
    if (rows.is_contiguous() || rows.t().is_contiguous())
      MappedFile::give_back(rows.const_data_ptr(), static_cast<std::size_t>(rows.nbytes()));
    return;
  }
  for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
    const std::int64_t first = std::max(begin, begins_[i]), last = std::min(end, begins_[i + 1]);
    if (first < last) stored_.files->give_back(stored_.name.theirs[i], first - begins_[i], last - begins_[i]);
  }
}

void StoredWeights::add(const at::Tensor& parameter, StoredWeight stored) {
  entries_.emplace(parameter.unsafeGetTensorImpl(), Entry{parameter, std::move(stored)});
}

bool StoredWeights::contains(const at::Tensor& parameter) const {
  return entries_.contains(parameter.unsafeGetTensorImpl());
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
  for (const auto& [impl, entry] : entries_) load(entry.parameter);
}

}  // namespace zoo
