#include "apps/training/records/metrics_log.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <sstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/training/parallel/launchers.h"
#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/protobuf_message.h"

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

// Rotated plus a constant, so that a checksum of data that contains checksums is not weak.
std::string masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kMaskDelta = 0xA282EAD8;
  return little_endian(std::rotr(crc32c(bytes.data(), bytes.size()), 15) + kMaskDelta, 4);
}

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  return length + masked_checksum(length) + std::string(bytes) + masked_checksum(bytes);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event { wall_time = 1; step = 2; file_version = 3; summary = 5; session_log = 7 }
std::string event(std::int64_t step, int field, std::string_view what) {
  ProtobufMessage event;
  event.real(1, wall_time());
  event.number(2, step);
  event.text(field, what);
  return event.bytes();
}

// The file, with the lines of earlier iterations alone.
const std::filesystem::path& cut_before(const std::filesystem::path& path, std::int64_t first_iteration) {
  std::string kept;
  if (first_iteration > 0)
    for (const auto& [iteration, line] : lines_in(path))
      if (iteration < first_iteration) kept += line + "\n";
  write_file(path, kept);
  return path;
}

std::filesystem::path new_name_in(const std::filesystem::path& directory) {
  make_directories(directory);
  return directory / ("events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time())) + "." +
                      host_name() + "." + std::to_string(::getpid()));
}

}  // namespace

bool has_line(const std::filesystem::path& path, std::int64_t iteration) {
  return std::ranges::any_of(lines_in(path), [&](const auto& each) { return each.first == iteration; });
}

MetricsLog::MetricsLog(const std::filesystem::path& path, std::int64_t first_iteration)
    : file_(cut_before(path, first_iteration)) {}

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
  if (!metrics.attention_logit_maxima.empty())
    object["attention_logit_maxima"] = metrics.attention_logit_maxima;
  if (!metrics.wait_ms.empty()) object["wait_ms"] = metrics.wait_ms;
  file_.append(json_text(object) + "\n");
}

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t first_iteration)
    : file_(new_name_in(directory)) {
  file_.append(tfrecord(event(0, 3, "brain.Event:2")));
  if (first_iteration == 0) return;
  ProtobufMessage session_log;
  session_log.number(1, 1);  // status: START
  file_.append(tfrecord(event(first_iteration, 7, session_log.bytes())));
}

void EventFile::write(const Metrics& metrics) {
  ProtobufMessage summary;  // { value = 1 { tag = 1; simple_value = 2 } }
  const auto add = [&](const std::string& tag, double value) {
    ProtobufMessage scalar;
    scalar.text(1, tag);
    scalar.real(2, static_cast<float>(value));
    summary.message(1, scalar);
  };
  if (metrics.train_loss) add("train/loss", *metrics.train_loss);
  add("train/lr", metrics.lr);
  for (const Score& score : metrics.train_scores) add("train/" + score.name, score.value);
  if (metrics.tokens_per_second > 0) add("train/tokens_per_second", metrics.tokens_per_second);
  if (metrics.tokens >= 0) add("train/tokens", static_cast<double>(metrics.tokens));
  if (metrics.grad_norm) add("train/grad_norm", *metrics.grad_norm);
  if (metrics.skipped) add("train/skipped_updates", static_cast<double>(*metrics.skipped));
  if (metrics.loss_scale) add("train/loss_scale", *metrics.loss_scale);
  for (const LayerNorms& layer : metrics.layers) {
    add("grad_norm/" + layer.layer, layer.gradient);
    add("weight_norm/" + layer.layer, layer.weight);
    add("update_ratio/" + layer.layer, layer.update_ratio());
  }
  for (std::size_t i = 0; i < metrics.attention_logit_maxima.size(); ++i)
    add("attention_logit_maximum/" + std::to_string(i), metrics.attention_logit_maxima[i]);
  if (metrics.val_loss) add("val/loss", *metrics.val_loss);
  for (const Score& score : metrics.val_scores) add("val/" + score.name, score.value);
  file_.append(tfrecord(event(metrics.iter, 5, summary.bytes())));
}

}  // namespace zoo
