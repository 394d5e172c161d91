#include "apps/training/records/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/error.h"

namespace zoo {
namespace {

constexpr std::uint32_t kMaskDelta = 0xA282EAD8;

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// Parts of a protobuf message: field number and wire type, then the value.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string integer_field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}

std::string double_field(int number, double value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 1) +
         little_endian(std::bit_cast<std::uint64_t>(value));
}

std::string bytes_field(int number, std::string_view value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(value.size()) + std::string(value);
}

std::string float_field(int number, float value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 5) +
         little_endian(std::bit_cast<std::uint32_t>(value));
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event { wall_time = 1; step = 2; file_version = 3; summary = 5; session_log = 7 }
std::string event(std::int64_t step, const std::string& what) {
  return double_field(1, wall_time()) + integer_field(2, static_cast<std::uint64_t>(step)) + what;
}

// Summary { value = 1 { tag = 1; simple_value = 2 } }
std::string scalar(const std::string& tag, double value) {
  return bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(value)));
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
  append(event(0, bytes_field(3, "brain.Event:2")));
  // SessionLog { status = 1 }, where 1 is START.
  if (first_iteration > 0) append(event(first_iteration, bytes_field(7, integer_field(1, 1))));
}

EventFile::~EventFile() {
  ::close(descriptor_);
}

void EventFile::write(const Metrics& metrics) {
  std::string summary = scalar("train/loss", metrics.train_loss) + scalar("train/lr", metrics.lr);
  for (const Score& score : metrics.train_scores) summary += scalar("train/" + score.name, score.value);
  if (metrics.tokens_per_second > 0) summary += scalar("train/tokens_per_second", metrics.tokens_per_second);
  if (metrics.grad_norm) summary += scalar("train/grad_norm", *metrics.grad_norm);
  if (metrics.loss_scale) summary += scalar("train/loss_scale", *metrics.loss_scale);
  if (metrics.val_loss) summary += scalar("val/loss", *metrics.val_loss);
  for (const Score& score : metrics.val_scores) summary += scalar("val/" + score.name, score.value);
  append(event(metrics.iter, bytes_field(5, summary)));
}

void EventFile::append(std::string_view bytes) {
  const std::string record = tfrecord(bytes);
  const ssize_t written = ::write(descriptor_, record.data(), record.size());
  if (written != static_cast<ssize_t>(record.size()))
    throw Error("cannot write ", path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace zoo
