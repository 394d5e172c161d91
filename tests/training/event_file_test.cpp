#include <cstring>

#include "apps/training/records/metrics_log.h"
#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

TEST_CASE("A record is length, checksum, bytes, checksum, both CRC-32C masked as TFRecord does it") {
  const zoo::test::TemporaryDirectory directory;
  { const zoo::EventFile file(directory.path(), 0); }
  const std::string bytes = zoo::read_file(std::filesystem::directory_iterator(directory.path())->path());
  const auto number = [&](std::size_t at) {
    std::uint32_t found = 0;
    std::memcpy(&found, bytes.data() + at, sizeof found);
    return found;
  };
  const auto masked = [&](std::size_t at, std::size_t size) {
    const std::uint32_t crc = zoo::crc32c(bytes.data() + at, size);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
  };
  const std::size_t size = number(0);
  REQUIRE(bytes.size() == 8 + 4 + size + 4);
  CHECK(number(4) == 0);  // of the length's eight bytes
  CHECK(number(8) == masked(0, 8));
  CHECK(number(12 + size) == masked(12, size));
}

TEST_CASE("Each logged iteration is an event with its scalars") {
  const zoo::test::TemporaryDirectory directory;
  {
    zoo::EventFile file(directory.path(), 7);
    file.write({.iter = 300, .train_loss = 0.5, .lr = 0.25, .val_scores = {{"f1", 1.0}}});
  }
  const std::string bytes = zoo::read_file(std::filesystem::directory_iterator(directory.path())->path());
  CHECK(bytes.find("brain.Event:2") != std::string::npos);
  // Step 7, then a session log of two bytes: status START.
  CHECK(bytes.find(std::string("\x10\x07\x3A\x02\x08\x01")) != std::string::npos);
  // Step 300 as a varint; tag and 0.5 as a little-endian float.
  CHECK(bytes.find(std::string("\x10\xAC\x02\x2A")) != std::string::npos);
  CHECK(bytes.find(std::string("\x0A\x0Atrain/loss\x15\0\0\0\x3F", 17)) != std::string::npos);
  CHECK(bytes.find(std::string("\x0A\x06val/f1\x15\0\0\x80\x3F", 13)) != std::string::npos);
}
