#include "apps/training/records/metrics_log.h"
#include "data/base/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

TEST_CASE("The checksum is CRC-32C, masked as TFRecord does it") {
  // RFC 3720, B.4: 32 bytes of zeros have 0x8A9136AA; "123456789" has 0xE3069283 in every catalogue of CRCs.
  const auto masked = [](std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; };
  CHECK(zoo::masked_crc32c(std::string(32, '\0')) == masked(0x8A9136AAU));
  CHECK(zoo::masked_crc32c("123456789") == masked(0xE3069283U));
}

TEST_CASE("A record is length, checksum, bytes, checksum") {
  const std::string record = zoo::tfrecord("123456789");
  REQUIRE(record.size() == 8 + 4 + 9 + 4);
  CHECK(record.substr(0, 8) == std::string("\x09\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 9) == "123456789");
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
