#include "data/base/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kMostElements = 1U << 22;  // of a list; the largest vocabularies have 2^19
constexpr std::uint64_t kLongestKey = 65535, kLongestName = 64, kMostDimensions = 4;

constexpr GgufType kTypes[]{{0, "F32", 1, 4},       {1, "F16", 1, 2},       {2, "Q4_0", 32, 18},
                            {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},    {7, "Q5_1", 32, 24},
                            {8, "Q8_0", 32, 34},    {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
                            {14, "Q6_K", 256, 210}, {28, "F64", 1, 8},      {30, "BF16", 1, 2}};

// Types of ggml that the zoo does not read.
constexpr std::pair<std::uint32_t, const char*> kOthers[]{
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {29, "IQ1_M"},   {34, "TQ1_0"},
    {35, "TQ2_0"},   {39, "MXFP4"}, {40, "NVFP4"}};

// Types of the metadata's values.
enum class Value : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kList,
  kUint64,
  kInt64,
  kFloat64
};

// Reads values in order and checks each read against the end of the file.
class Reader {
 public:
  explicit Reader(const MappedFile& file) : file_(file) {}

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(file_.path(), ": ", parts...);
  }

  std::string_view bytes(std::uint64_t count, std::string_view what) {
    const auto all = file_.bytes();
    if (count > all.size() - at_)
      fail("truncated: ", what, " needs ", count, " bytes at byte ", at_, ", the file has ", all.size() - at_,
           " there");
    at_ += count;
    return {reinterpret_cast<const char*>(all.data()) + at_ - count, static_cast<std::size_t>(count)};
  }

  template <class T> T number(std::string_view what) {
    T value;
    std::memcpy(&value, bytes(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string text(std::uint64_t longest, const std::string& what) {
    const auto length = number<std::uint64_t>(what);
    if (length > longest) fail(what, " claims a text of ", length, " bytes, more than ", longest);
    return std::string(bytes(length, what));
  }

  json metadata(std::uint64_t count) {
    json metadata = json::object();
    for (std::uint64_t i = 0; i < count; ++i) {
      key_ = "key " + std::to_string(i + 1) + " of " + std::to_string(count);
      const std::string name = utf8(text(kLongestKey, key_));
      key_ = "'" + name + "'";
      json value = this->value(type());
      if (!metadata.emplace(name, std::move(value)).second) fail("the key ", key_, " is there twice");
    }
    return metadata;
  }

  std::size_t at() const { return at_; }

 private:
  Value type() { return static_cast<Value>(number<std::uint32_t>(key_)); }

  // The JSON library throws for such bytes when it prints a value.
  std::string utf8(std::string text) const {
    try {
      json(text).dump();
    } catch (const json::exception&) {
      fail(key_, " is not UTF-8");
    }
    return text;
  }

  template <class T> json real() {
    const T value = number<T>(key_);
    if (!std::isfinite(value)) fail(key_, " is not a finite number");
    return value;
  }

  json boolean() {
    const auto value = number<std::uint8_t>(key_);
    if (value > 1) fail(key_, " is ", int{value}, ", not a boolean");
    return value == 1;
  }

  json list() {
    const Value element = type();
    if (element == Value::kList) fail(key_, " is a list of lists, which the zoo does not read");
    const auto count = number<std::uint64_t>(key_);
    if (count > kMostElements) fail(key_, " claims ", count, " elements, more than ", kMostElements);
    json list = json::array();
    for (std::uint64_t i = 0; i < count; ++i) list.push_back(value(element));
    return list;
  }

  json value(Value type) {
    switch (type) {
      case Value::kUint8: return number<std::uint8_t>(key_);
      case Value::kInt8: return number<std::int8_t>(key_);
      case Value::kUint16: return number<std::uint16_t>(key_);
      case Value::kInt16: return number<std::int16_t>(key_);
      case Value::kUint32: return number<std::uint32_t>(key_);
      case Value::kInt32: return number<std::int32_t>(key_);
      case Value::kUint64: return number<std::uint64_t>(key_);
      case Value::kInt64: return number<std::int64_t>(key_);
      case Value::kFloat32: return real<float>();
      case Value::kFloat64: return real<double>();
      case Value::kBool: return boolean();
      case Value::kText: return utf8(text(std::numeric_limits<std::uint64_t>::max(), key_));
      case Value::kList: return list();
    }
    fail(key_, " has a value of type ", static_cast<std::uint32_t>(type), ", which GGUF does not have");
  }

  const MappedFile& file_;
  std::size_t at_ = 0;
  std::string key_;  // of the metadata, in messages
};

const GgufType* type_of(std::uint32_t id, const std::string& what, const Reader& reader) {
  std::vector<std::string> known;
  for (const GgufType& type : kTypes) {
    if (type.id == id) return &type;
    known.emplace_back(type.name);
  }
  for (const auto& [other, name] : kOthers) {
    if (other == id)
      reader.fail(what, " is ", name, ", which the zoo does not read; it reads ", joined(known));
  }
  reader.fail(what, " has the type ", id, ", which is not one of ggml");
}

// `end` becomes the number of bytes.
GgufFile::Tensor read_tensor(Reader& reader, const std::string& place) {
  GgufFile::Tensor tensor{.name = reader.text(kLongestName, place)};
  const std::string what = "tensor '" + tensor.name + "'";
  const auto dimensions = reader.number<std::uint32_t>(what);
  if (dimensions == 0 || dimensions > kMostDimensions)
    reader.fail(what, " has ", dimensions, " dimensions; expected 1 to ", kMostDimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.shape.push_back(reader.number<std::int64_t>(what));
  tensor.type = type_of(reader.number<std::uint32_t>(what), what, reader);
  const std::int64_t row = tensor.shape.front();
  std::size_t numbers = 1;
  for (const std::int64_t size : tensor.shape) {
    if (size <= 0) reader.fail(what, " has a dimension of ", size);
    const auto product = checked_product({numbers, static_cast<std::size_t>(size)});
    if (!product) reader.fail(what, " is too large");
    numbers = *product;
  }
  if (row % static_cast<std::int64_t>(tensor.type->block) != 0)
    reader.fail(what, " has rows of ", row, " numbers, but blocks of ", tensor.type->name, " have ",
                tensor.type->block);
  std::ranges::reverse(tensor.shape);
  tensor.begin = reader.number<std::uint64_t>(what);
  const auto bytes = checked_product({numbers / tensor.type->block, tensor.type->bytes});
  if (!bytes) reader.fail(what, " is too large");
  tensor.end = *bytes;
  return tensor;
}

std::size_t alignment_of(const json& metadata, const Reader& reader) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return 32;
  const std::size_t alignment = found->is_number_unsigned() ? found->get<std::size_t>() : 0;
  const bool good = alignment > 0 && alignment % 8 == 0 && alignment <= 1U << 20;
  if (!good) reader.fail("'general.alignment' is ", found->dump(), "; expected a multiple of 8");
  return alignment;
}

// The format requires each tensor at the next aligned byte after the previous one.
void place(std::vector<GgufFile::Tensor>& tensors, std::size_t alignment, std::size_t size,
           const Reader& reader) {
  const auto aligned = [&](std::size_t at) { return (at + alignment - 1) / alignment * alignment; };
  const std::size_t start = aligned(reader.at());
  std::ranges::sort(tensors, [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::size_t expected = start;
  for (GgufFile::Tensor& tensor : tensors) {
    const std::string what = "tensor '" + tensor.name + "'";
    if (expected < start || tensor.begin != expected - start)
      reader.fail(what, " begins at byte ", tensor.begin, " of the data; expected ", expected - start);
    if (expected > size || tensor.end > size - expected)
      reader.fail("truncated: ", what, " needs ", tensor.end, " bytes at byte ", expected, ", the file has ",
                  size);
    tensor.begin = expected;
    tensor.end += expected;
    expected = aligned(tensor.end);
  }
  if (size > std::max(expected, start))
    reader.fail(size - std::max(expected, start), " bytes more than the header describes");
}

}  // namespace

const GgufType& gguf_type(std::string_view name) {
  for (const GgufType& type : kTypes)
    if (type.name == name) return type;
  throw std::out_of_range("gguf_type");
}

bool GgufFile::is_one(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::string begin(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kMagic;
}

GgufFile::GgufFile(const std::filesystem::path& path) : file_(std::make_shared<MappedFile>(path)) {
  Reader reader(*file_);
  if (reader.bytes(kMagic.size(), "the header") != kMagic) reader.fail("not a GGUF file");
  const auto version = reader.number<std::uint32_t>("the header");
  if (version != 2 && version != 3) {
    const bool swapped = version == 2U << 24 || version == 3U << 24;
    reader.fail(swapped ? "a big-endian GGUF file, which the zoo does not read"
                        : "GGUF of version " + std::to_string(version) + "; the zoo reads versions 2 and 3");
  }
  const auto tensors = reader.number<std::uint64_t>("the header");
  metadata_ = std::make_shared<json>(reader.metadata(reader.number<std::uint64_t>("the header")));
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    tensors_.push_back(
        read_tensor(reader, "tensor " + std::to_string(i + 1) + " of " + std::to_string(tensors)));
    if (!names.insert(tensors_.back().name).second)
      reader.fail("two tensors are named '", tensors_.back().name, "'");
  }
  place(tensors_, alignment_of(*metadata_, reader), file_->bytes().size(), reader);
}

std::string GgufFile::text(const char* key) const {
  const auto found = metadata_->find(key);
  if (found == metadata_->end()) return "";
  if (!found->is_string()) throw Error(path(), ": '", key, "' must be a text, got ", found->dump());
  return found->get<std::string>();
}

}  // namespace zoo
