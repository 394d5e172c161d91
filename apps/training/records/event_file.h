#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "apps/training/records/metrics_log.h"

namespace zoo {

/// The checksum of TFRecord: CRC-32C (Castagnoli), rotated and added to so that a checksum of data that holds
/// checksums is not weak.
std::uint32_t masked_crc32c(std::string_view bytes);

/// A record as TFRecord frames it: length, its checksum, the bytes, theirs; little-endian.
std::string tfrecord(std::string_view bytes);

/// What TensorBoard shows: a file of events, each a protobuf message "Event" in a TFRecord. A resumed run
/// writes a file of its own, which tells TensorBoard to forget the later steps of the files before it.
class EventFile {
 public:
  /// events.out.tfevents.TIME.HOST.PROCESS in `directory`, which is made. Throws Error naming it.
  EventFile(const std::filesystem::path& directory, std::int64_t first_iteration);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// train/loss, train/lr, …; val/loss, … where it was evaluated. Throws Error when the disk is full.
  void write(const Metrics& metrics);

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace zoo
