#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "apps/training/records/metrics_log.h"

namespace zoo {

/// TFRecord's checksum: CRC-32C (Castagnoli), rotated plus a constant, so that a checksum of data that
/// contains checksums is not weak.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Frames a TFRecord: length, checksum of the length, bytes, checksum of the bytes; little-endian.
std::string tfrecord(std::string_view bytes);

/// Event file for TensorBoard: each record of the TFRecord file is a protobuf message "Event". A resumed run
/// writes a new file that tells TensorBoard to drop the later steps of older files.
class EventFile {
 public:
  /// Creates `directory` and events.out.tfevents.TIME.HOST.PROCESS in it. Throws Error naming it.
  EventFile(const std::filesystem::path& directory, std::int64_t first_iteration);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Writes train/loss, train/lr, …; val/loss, … after an evaluation. Throws Error when the disk is full.
  void write(const Metrics& metrics);

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace zoo
