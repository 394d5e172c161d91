#include "models/formats/safetensors.h"

#include "data/base/atomic_file.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using Catch::Contains;

namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

// A file written by hand: length, header, data.
std::string bytes_of(const std::string& header, const std::string& data = "") {
  return length_bytes(header.size()) + header + data;
}

class File {
 public:
  explicit File(const std::string& bytes) : path(directory_ / "weights.safetensors") {
    write_file(path, bytes);
  }

 private:
  test::TemporaryDirectory directory_;

 public:
  std::filesystem::path path;
};

std::string fault_of(const std::string& bytes) {
  const File file(bytes);
  const std::string fault = test::error_of([&] { SafetensorsFile opened(file.path); });
  if (!fault.empty()) CHECK_THAT(fault, Contains("weights.safetensors"));
  return fault;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                   int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// One tensor "w" whose fields are given as JSON, with `size` bytes of data.
std::string one(const std::string& fields, std::size_t size = 8) {
  return bytes_of("{\"w\":" + fields + "}", std::string(size, 'x'));
}

}  // namespace

TEST_CASE("a safetensors file written by hand is read") {
  // 1.0f = 00 00 80 3f, -2.0f = 00 00 00 c0; the tensors' order in the header is not that of their bytes.
  const std::string floats("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8),
      longs("\x05\x00\x00\x00\x00\x00\x00\x00", 8);
  const File file(bytes_of("{\"__metadata__\":{\"format\":\"pt\",\"by\":\"hand\"}," +
                               tensor("b", "F32", "[2,1]", 8, 16) + "," + tensor("a", "I64", "[1]", 0, 8) +
                               "}  ",
                           longs + floats));
  const SafetensorsFile opened(file.path);
  CHECK(opened.names() == std::vector<std::string>{"a", "b"});
  CHECK(opened.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"by", "hand"}});
  CHECK(at::equal(opened.tensor("a"), at::tensor({5}, at::kLong)));
  CHECK(at::equal(opened.tensor("b"), at::tensor({1.0, -2.0}, at::kFloat).view({2, 1})));
  CHECK(opened.contains("a"));
  CHECK_FALSE(opened.contains("c"));
  CHECK_THAT(test::error_of([&] { opened.tensor("c"); }), Contains("weights.safetensors") && Contains("'c'"));
}

TEST_CASE("scalars, tensors without elements and unaligned tensors are good") {
  const std::string data("\x07\x00\x00\x80\x3f",
                         5);  // a byte first, so that the float after it is not aligned
  const File file(bytes_of("{" + tensor("byte", "U8", "[]", 0, 1) + "," +
                               tensor("none", "F32", "[3,0]", 1, 1) + "," +
                               tensor("float", "F32", "[]", 1, 5) + "}",
                           data));
  const SafetensorsFile opened(file.path);
  CHECK(opened.tensor("byte").item<int>() == 7);
  CHECK(opened.tensor("byte").dim() == 0);
  CHECK(opened.tensor("none").sizes() == at::IntArrayRef({3, 0}));
  CHECK(opened.tensor("float").item<float>() == 1.0f);
  // An empty file of no tensors is one too.
  CHECK(SafetensorsFile(File(bytes_of("{}")).path).names().empty());
}

TEST_CASE("every dtype keeps its bits through a file") {
  const test::TemporaryDirectory directory;
  at::manual_seed(1);
  NamedTensors tensors;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte, at::kBool}) {
    tensors.emplace_back(safetensors_name(type), (at::randn({3, 5}) * 9).abs().to(type));
  }
  tensors.emplace_back("transposed", at::randn({4, 3}).t());
  tensors.emplace_back("scalar", at::tensor(2.5).squeeze());
  tensors.emplace_back("nan", at::tensor({std::nan("")}));
  write_safetensors(directory / "all.safetensors", tensors, {{"key", "välue \"quoted\""}});
  const SafetensorsFile opened(directory / "all.safetensors");
  CHECK(opened.metadata().at("key") == "välue \"quoted\"");
  REQUIRE(opened.names().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, expected] = tensors[i];
    CAPTURE(name);
    CHECK(opened.names()[i] == name);  // the order of writing
    const at::Tensor actual = opened.tensor(name);
    CHECK(actual.scalar_type() == expected.scalar_type());
    CHECK(actual.sizes() == expected.sizes());
    CHECK(at::equal(actual.contiguous().flatten().view(at::kByte),
                    expected.contiguous().flatten().view(at::kByte)));
  }
}

TEST_CASE("a file has the checksums of its header and its tensors") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "sums.safetensors";
  const std::string digits = "123456789";
  const at::Tensor bytes = at::tensor(std::vector<std::uint8_t>(digits.begin(), digits.end()), at::kByte);
  write_safetensors(path, {{"digits", bytes}, {"zeros", at::zeros({8}, at::kInt)}, {"none", at::ones({0})}});
  // RFC 3720, B.4, and every catalogue of CRCs; of no bytes it is 0.
  const std::string written = read_file(path), sums = "e30692838a9136aa00000000";
  CHECK_THAT(written, Contains(sums + "\""));
  const SafetensorsFile opened(path);
  CHECK(opened.verify());
  CHECK(opened.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK_FALSE(
      SafetensorsFile(File(one("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}")).path).verify());
}

TEST_CASE("a tensor stays readable after its file is closed, and writing to it leaves the file as it was") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "w.safetensors";
  write_safetensors(path, {{"w", at::ones({4})}});
  const std::string before = read_file(path);
  at::Tensor tensor = SafetensorsFile(path).tensor("w");
  tensor.fill_(7.0);
  CHECK(at::equal(tensor, at::full({4}, 7.0)));
  CHECK(read_file(path) == before);
  CHECK(at::equal(SafetensorsFile(path).tensor("w"), at::ones({4})));
}

TEST_CASE("a file that ends too early or claims too much is refused") {
  CHECK_THAT(fault_of(""), Contains("0 bytes are too short"));
  CHECK_THAT(fault_of(std::string("\x02\x00\x00", 3)), Contains("3 bytes are too short"));
  CHECK_THAT(fault_of(length_bytes(0)), Contains("not valid JSON"));
  CHECK_THAT(fault_of(length_bytes(100) + "{}"),
             Contains("truncated: the header claims 100 bytes, the file has 2"));
  CHECK_THAT(fault_of(length_bytes(200'000'000) + "{}"), Contains("claims 200000000 bytes, too many"));
  CHECK_THAT(fault_of(length_bytes(~std::uint64_t{0}) + "{}"),
             Contains("18446744073709551615 bytes, too many"));
  CHECK_THAT(fault_of(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})", 11)),
             Contains("truncated: tensor 'w' ends at byte 12 of the data, which has 11"));
  CHECK_THAT(fault_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 9)),
             Contains("1 bytes more"));
  CHECK_THAT(fault_of(bytes_of("{}", "x")), Contains("1 bytes more"));
}

TEST_CASE("what is no header is refused") {
  CHECK_THAT(fault_of(bytes_of("{\"w\":")), Contains("not valid JSON"));
  CHECK_THAT(fault_of(bytes_of("\xff\xfe{}")), Contains("not valid JSON"));
  CHECK_THAT(fault_of(bytes_of("{\"\xff\":1}")), Contains("not valid JSON"));
  CHECK_THAT(fault_of(bytes_of("{}{}")), Contains("not valid JSON"));
  CHECK_THAT(fault_of(bytes_of("[1,2]")), Contains("must be a JSON object"));
  CHECK_THAT(fault_of(bytes_of("7")), Contains("must be a JSON object"));
  CHECK_THAT(fault_of(bytes_of(std::string(100'000, '['))), Contains("nested too deeply"));
  CHECK_THAT(fault_of(bytes_of(std::string(100'000, '[') + std::string(100'000, ']'))),
             Contains("nested too deeply"));
  CHECK_THAT(fault_of(bytes_of(
                 "{" + tensor("w", "U8", "[1]", 0, 1) + "," + tensor("w", "I8", "[1]", 0, 1) + "}", "x")),
             Contains("has the key 'w' twice"));
  CHECK_THAT(fault_of(one(R"({"dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8]})")),
             Contains("has the key 'dtype' twice"));
  CHECK_THAT(fault_of(bytes_of(R"({"__metadata__":[]})")), Contains("'__metadata__' must be an object"));
  CHECK_THAT(fault_of(bytes_of(R"({"__metadata__":{"n":1}})")), Contains("'n' that is not a string"));
}

TEST_CASE("an entry that is no tensor is refused by name") {
  struct Case {
    const char* fields;
    const char* message;
  };
  const std::vector<Case> cases{
      {"7", "tensor 'w' must be an object"},
      {R"({"shape":[2],"data_offsets":[0,8]})", "must have a string 'dtype'"},
      {R"({"dtype":3,"shape":[2],"data_offsets":[0,8]})", "must have a string 'dtype'"},
      {R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})", "dtype \"F33\""},
      {R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})", "dtype \"f32\""},
      {R"({"dtype":"F32","data_offsets":[0,8]})", "list 'shape'"},
      {R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "list 'shape'"},
      {R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "'shape' of -2"},
      {R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "'shape' of 2.0"},
      {R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})", "'shape' of \"2\""},
      {R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})", "too large"},
      {R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]})", "'shape' of"},
      {R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})", "too large"},
      {R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})", "too large"},
      {R"({"dtype":"F32","shape":[0,9223372036854775807,8],"data_offsets":[0,0]})", "too large"},
      {R"({"dtype":"F32","shape":[2]})", "list 'data_offsets'"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "two data_offsets"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,4,8]})", "two data_offsets"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[-1,8]})", "'data_offsets' of -1"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})", "'data_offsets' of 8.0"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "begins after it ends"},
      {R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
       "needs 12 bytes by its shape and type, its offsets span 8"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1]})", "unknown key 'stride'"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551615]})",
       "needs 8 bytes"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.fields);
    CHECK_THAT(fault_of(one(each.fields)), Contains("'w'") && Contains(each.message));
  }
}

TEST_CASE("tensors must cover the data without an overlap or a gap") {
  const auto two = [](int begin, int end, int size) {
    return fault_of(bytes_of("{" + tensor("a", "U8", "[4]", 0, 4) + "," +
                                 tensor("b", "U8", "[" + std::to_string(end - begin) + "]", begin, end) + "}",
                             std::string(static_cast<std::size_t>(size), 'x')));
  };
  CHECK(two(4, 8, 8).empty());
  CHECK_THAT(two(3, 7, 7), Contains("tensor 'b' overlaps the one before it"));
  CHECK_THAT(two(0, 4, 4), Contains("overlaps"));
  CHECK_THAT(two(1, 3, 4), Contains("tensor 'b' overlaps"));
  CHECK_THAT(two(6, 8, 8), Contains("2 unused bytes before tensor 'b'"));
  CHECK_THAT(two(4, 8, 6), Contains("tensor 'b' ends at byte 8 of the data, which has 6"));
  CHECK_THAT(two(1 << 30, (1 << 30) + 4, 8), Contains("unused bytes before tensor 'b'"));
}

TEST_CASE("a path that is no file is refused") {
  const test::TemporaryDirectory directory;
  CHECK_THAT(test::error_of([&] { SafetensorsFile file(directory.path()); }), Contains("not a regular file"));
  CHECK_THAT(test::error_of([&] { SafetensorsFile file(directory / "absent"); }), Contains("absent"));
}

TEST_CASE("what cannot be written as safetensors is refused, and no file is left") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "w.safetensors";
  const at::Tensor ones = at::ones({2});
  CHECK_THAT(test::error_of([&] {
               write_safetensors(path, {{"w", ones}, {"w", ones}});
             }),
             Contains("named 'w'"));
  CHECK_THAT(test::error_of([&] {
               write_safetensors(path, {{"c", ones.to(at::kComplexFloat)}});
             }),
             Contains("'c'"));
  CHECK_THAT(test::error_of([&] {
               write_safetensors(directory / "no/w.safetensors", {{"w", ones}});
             }),
             Contains("no"));
  CHECK(std::filesystem::is_empty(directory.path()));
  // "__metadata__" is not a tensor's name, with or without metadata in the file.
  CHECK_THAT(test::error_of([&] {
               write_safetensors(path, {{"__metadata__", ones}}, {});
             }),
             Contains("__metadata__"));
}
