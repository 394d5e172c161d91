#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "apps/training/records/metrics_log.h"
#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/error.h"
#include "data/base/protobuf_message.h"

namespace zoo {
namespace {

constexpr std::uint32_t kMaskDelta = 0xA282EAD8;

template <class T> std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
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

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes.data(), bytes.size()), 15) + kMaskDelta;
}

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(bytes) +
         little_endian(masked_crc32c(bytes));
}

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t first_iteration) {
  make_directories(directory);
  std::array<char, 256> host{"host"};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  path_ = directory / ("events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time())) + "." +
                       host.data() + "." + std::to_string(::getpid()));
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error("cannot write ", path_, ": ", std::strerror(errno));
  append(event(0, 3, "brain.Event:2"));
  if (first_iteration == 0) return;
  ProtobufMessage session_log;
  session_log.number(1, 1);  // status: START
  append(event(first_iteration, 7, session_log.bytes()));
}

EventFile::~EventFile() { ::close(descriptor_); }

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
  if (metrics.val_loss) add("val/loss", *metrics.val_loss);
  for (const Score& score : metrics.val_scores) add("val/" + score.name, score.value);
  append(event(metrics.iter, 5, summary.bytes()));
}

void EventFile::append(std::string_view bytes) {
  const std::string record = tfrecord(bytes);
  const ssize_t written = ::write(descriptor_, record.data(), record.size());
  if (written != static_cast<ssize_t>(record.size()))
    throw Error("cannot write ", path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace zoo
