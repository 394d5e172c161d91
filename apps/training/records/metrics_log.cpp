#include "apps/training/records/metrics_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {
namespace {

// The whole lines of a log, with their iterations.
std::vector<std::pair<std::int64_t, std::string>> lines_in(const std::filesystem::path& path) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  if (!std::filesystem::exists(path)) return found;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto object = parse_json(line);
    if (object.is_object() && object.contains("iter") && object["iter"].is_number_integer())
      found.emplace_back(object["iter"].get<std::int64_t>(), line);
  }
  return found;
}

}  // namespace

bool has_line(const std::filesystem::path& path, std::int64_t iteration) {
  return std::ranges::any_of(lines_in(path), [&](const auto& each) { return each.first == iteration; });
}

MetricsLog::MetricsLog(const std::filesystem::path& path, std::int64_t first_iteration) : path_(path) {
  std::string kept;
  if (first_iteration > 0)
    for (const auto& [iteration, line] : lines_in(path))
      if (iteration < first_iteration) kept += line + "\n";
  write_file(path, kept);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) throw Error("cannot write ", path, ": ", std::strerror(errno));
}

MetricsLog::~MetricsLog() { ::close(descriptor_); }

void MetricsLog::write(const Metrics& metrics) {
  nlohmann::ordered_json object{{"iter", metrics.iter},
                                {"train_loss", nullptr},
                                {"lr", metrics.lr},
                                {"ms_per_iter", metrics.ms_per_iter},
                                {"tokens_per_second", metrics.tokens_per_second}};
  if (metrics.tokens >= 0) object["tokens"] = metrics.tokens;
  if (metrics.train_loss) object["train_loss"] = *metrics.train_loss;
  for (const Score& score : metrics.train_scores) object["train_" + score.name] = score.value;
  if (metrics.grad_norm) object["grad_norm"] = *metrics.grad_norm;
  if (metrics.loss_scale) object["loss_scale"] = *metrics.loss_scale;
  if (metrics.skipped) object["skipped_updates"] = *metrics.skipped;
  if (metrics.val_loss) object["val_loss"] = *metrics.val_loss;
  for (const Score& score : metrics.val_scores) object["val_" + score.name] = score.value;
  for (const LayerNorms& layer : metrics.layers)
    object["layers"][layer.layer] = {
        {"grad_norm", layer.gradient}, {"weight_norm", layer.weight}, {"update_ratio", layer.update_ratio()}};
  if (!metrics.wait_ms.empty()) object["wait_ms"] = metrics.wait_ms;
  const std::string line = json_text(object) + "\n";
  const ssize_t written = ::write(descriptor_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()))
    throw Error("cannot write ", path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace zoo
