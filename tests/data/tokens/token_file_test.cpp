#include "data/tokens/token_file.h"

#include <stdexcept>

#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::TokenFile;
using zoo::TokenId;
using zoo::TokenIds;
using zoo::TokenWidth;
using zoo::test::message_of;
using zoo::test::read_bytes;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

namespace {

std::vector<std::int64_t> copied(const TokenFile& tokens, std::size_t begin, std::size_t count) {
  std::vector<std::int64_t> ids(count, -7);
  tokens.copy(begin, ids);
  return ids;
}

void write(const std::filesystem::path& path, const TokenIds& ids, TokenWidth width) {
  zoo::AtomicFile file(path);
  zoo::write_ids(ids, width, file);
  file.commit();
}

}  // namespace

TEST_CASE("token_width is uint16 as long as every id fits") {
  CHECK(zoo::token_width(65) == TokenWidth::kUint16);
  CHECK(zoo::token_width(65536) == TokenWidth::kUint16);
  CHECK(zoo::token_width(65537) == TokenWidth::kUint32);
}

TEST_CASE("a token file is little-endian uint16 or uint32") {
  const TemporaryDirectory folder;
  const TokenFile narrow(write_bytes(folder / "n", std::string("\x01\x00\xFF\xFF\x02\x01", 6)),
                         TokenWidth::kUint16);
  REQUIRE(narrow.size() == 3);
  CHECK(narrow[1] == 65535);
  CHECK(copied(narrow, 0, 3) == std::vector<std::int64_t>{1, 65535, 258});
  CHECK(copied(narrow, 1, 2) == std::vector<std::int64_t>{65535, 258});
  const TokenFile wide(write_bytes(folder / "w", std::string("\x01\x00\x01\x00\x00\x00\x00\x7F", 8)),
                       TokenWidth::kUint32);
  REQUIRE(wide.size() == 2);
  CHECK(wide[0] == 65537);
  CHECK(copied(wide, 0, 2) == std::vector<std::int64_t>{65537, 0x7F000000});
}

TEST_CASE("ids in memory are written in either width and read back") {
  const TemporaryDirectory folder;
  const TokenIds ids{3, 513, 65535};
  CHECK(TokenFile(ids, "memory")[2] == 65535);
  write(folder / "n", ids, TokenWidth::kUint16);
  CHECK(read_bytes(folder / "n") == std::string("\x03\x00\x01\x02\xFF\xFF", 6));
  write(folder / "w", ids, TokenWidth::kUint32);
  CHECK(read_bytes(folder / "w") == std::string("\x03\x00\x00\x00\x01\x02\x00\x00\xFF\xFF\x00\x00", 12));
  CHECK(copied(TokenFile(folder / "w", TokenWidth::kUint32), 0, 3) ==
        std::vector<std::int64_t>{3, 513, 65535});
}

TEST_CASE("copies of a token file stay valid after the first is gone") {
  auto first = std::make_unique<TokenFile>(TokenIds{4, 5}, "memory");
  const TokenFile second = *first;
  first.reset();
  CHECK(copied(second, 0, 2) == std::vector<std::int64_t>{4, 5});
}

TEST_CASE("copy refuses to read past the end") {
  const TokenFile tokens(TokenIds{1, 2, 3}, "memory");
  CHECK(copied(tokens, 3, 0).empty());
  CHECK_THROWS_AS(copied(tokens, 0, 4), std::out_of_range);
  CHECK_THROWS_AS(copied(tokens, 2, 2), std::out_of_range);
  CHECK_THROWS_AS(copied(tokens, 4, 0), std::out_of_range);
  CHECK_THROWS_AS(copied(tokens, static_cast<std::size_t>(-1), 2), std::out_of_range);
}

TEST_CASE("a file whose size is no multiple of the width is an error") {
  const TemporaryDirectory folder;
  const auto path = write_bytes(folder / "train.bin", "12345");
  CHECK_THAT(message_of([&] { TokenFile tokens(path, TokenWidth::kUint16); }),
             Contains("train.bin") && Contains("2 bytes each") && Contains("has 5 bytes"));
  CHECK_THAT(message_of([&] { TokenFile tokens(path, TokenWidth::kUint32); }), Contains("4 bytes each"));
}

TEST_CASE("require_ids_below names file and position of the first id that is too large") {
  const TemporaryDirectory folder;
  TokenIds ids(1000, 64);
  ids[700] = 65;
  ids[800] = 66;
  const TokenFile memory(ids, "the split");
  write(folder / "n.bin", ids, TokenWidth::kUint16);
  write(folder / "w.bin", ids, TokenWidth::kUint32);
  const TokenFile narrow(folder / "n.bin", TokenWidth::kUint16), wide(folder / "w.bin", TokenWidth::kUint32);
  for (const TokenFile* tokens : {&memory, &narrow, &wide}) {
    CHECK_THAT(message_of([&] { tokens->require_ids_below(65); }),
               Contains(tokens->name() + ": the id 65 at position 700 is not below vocab_size 65"));
    CHECK_NOTHROW(tokens->require_ids_below(67));
  }
}

TEST_CASE("a negative id from memory is found too") {
  const TokenFile tokens(TokenIds{1, -1}, "the split");
  CHECK_THAT(message_of([&] { tokens.require_ids_below(65); }), Contains("position 1"));
}
