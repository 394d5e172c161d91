#include "models/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

using nlohmann::json;

// Same limit as the reference implementation.
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kLengthSize = 8;

// The key of the checksums in __metadata__, and the digits of each.
constexpr const char* kChecksums = "crc32c";
constexpr std::size_t kChecksumDigits = 8;

constexpr std::pair<at::ScalarType, const char*> kTypes[]{
    {at::kDouble, "F64"}, {at::kFloat, "F32"}, {at::kHalf, "F16"},  {at::kBFloat16, "BF16"},
    {at::kLong, "I64"},   {at::kInt, "I32"},   {at::kShort, "I16"}, {at::kChar, "I8"},
    {at::kByte, "U8"},    {at::kBool, "BOOL"}};

// A checksum in hexadecimal digits.
std::string checksum_text(std::uint32_t crc) {
  std::array<char, kChecksumDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(crc));
  return digits.data();
}

// Where the digits begin in a header.
std::optional<std::size_t> place_of_checksums(std::string_view header) {
  const std::string key = std::string("\"") + kChecksums + "\":\"";
  const std::size_t found = header.find(key);
  if (found == std::string_view::npos || header.size() - found < key.size() + kChecksumDigits)
    return std::nullopt;
  return found + key.size();
}

// Checksum of a header, in whose own digits at `place` zeros are counted.
std::uint32_t header_checksum(std::string_view header, std::size_t place) {
  const std::string zeros(kChecksumDigits, '0');
  const std::string_view after = header.substr(place + kChecksumDigits);
  const std::uint32_t before = crc32c(zeros.data(), zeros.size(), crc32c(header.data(), place));
  return crc32c(after.data(), after.size(), before);
}

// JSON allows duplicate keys; nlohmann keeps the last, readers that keep the first would see other tensors.
json parse_header(std::string_view text, const std::filesystem::path& path) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  if (is_nested_too_deeply(text)) throw Error(path, ": the safetensors header is nested too deeply");
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  json header;
  try {
    header = json::parse(text, watch);
  } catch (const json::exception&) {
    throw Error(path, ": the safetensors header is not valid JSON");
  }
  if (!header.is_object()) throw Error(path, ": the safetensors header must be a JSON object");
  if (!twice.empty()) throw Error(path, ": the safetensors header has the key '", twice, "' twice");
  return header;
}

std::string_view header_text(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() < kLengthSize)
    throw Error(file.path(), ": not a safetensors file: ", bytes.size(), " bytes are too short for a header");
  refuse_lfs_pointer(file.path(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::uint64_t length = 0;
  for (std::size_t i = kLengthSize; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (length > kMaxHeader)
    throw Error(file.path(), ": the safetensors header claims ", length, " bytes, too many");
  if (length > bytes.size() - kLengthSize)
    throw Error(file.path(), ": truncated: the header claims ", length, " bytes, the file has ",
                bytes.size() - kLengthSize, " after its length");
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthSize, static_cast<std::size_t>(length)};
}

// Bytes of a tensor; nothing if they are too many.
std::optional<std::size_t> byte_count(const std::vector<std::int64_t>& shape, std::size_t element) {
  // Strides are products of the other sizes, even if one is zero, and have a sign.
  std::size_t bytes = element;
  for (const std::int64_t size : shape) {
    const auto product = checked_product({bytes, static_cast<std::size_t>(std::max<std::int64_t>(size, 1))});
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return std::ranges::find(shape, 0) != shape.end() ? 0 : bytes;
}

TensorEntry parse_entry(const std::filesystem::path& path, const std::string& name, const json& value) {
  const auto fault = [&](const auto&... what) { return Error(path, ": tensor '", name, "' ", what...); };
  const auto list_of = [&](const char* key) -> const json& {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_array()) throw fault("must have a list '", key, "'");
    return *found;
  };
  const auto number_of = [&](const json& given, const char* key) {
    if (!given.is_number_unsigned()) throw fault("has a '", key, "' of ", given.dump());
    return given.get<std::size_t>();
  };
  if (!value.is_object()) throw fault("must be an object");
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw fault("has the unknown key '", key, "'");
  }
  const auto dtype = value.find("dtype");
  if (dtype == value.end() || !dtype->is_string()) throw fault("must have a string 'dtype'");
  const auto* const type = std::ranges::find_if(
      kTypes, [&](const auto& each) { return dtype->get_ref<const std::string&>() == each.second; });
  if (type == std::end(kTypes)) throw fault("has the dtype ", dtype->dump(), ", which the zoo does not know");
  TensorEntry entry{.dtype = type->first, .shape = {}};
  for (const json& size : list_of("shape")) {
    const std::size_t number = number_of(size, "shape");
    if (number > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()))
      throw fault("is too large");
    entry.shape.push_back(static_cast<std::int64_t>(number));
  }
  const json& offsets = list_of("data_offsets");
  if (offsets.size() != 2) throw fault("must have two data_offsets");
  entry.begin = number_of(offsets[0], "data_offsets");
  entry.end = number_of(offsets[1], "data_offsets");
  if (entry.begin > entry.end) throw fault("begins after it ends");
  const std::optional<std::size_t> needed = byte_count(entry.shape, c10::elementSize(entry.dtype));
  if (!needed) throw fault("is too large");
  if (entry.end - entry.begin != *needed)
    throw fault("needs ", *needed, " bytes by its shape and type, its offsets span ",
                entry.end - entry.begin);
  return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(std::make_shared<MappedFile>(path)) {
  const std::string_view text = header_text(*file_);
  data_start_ = kLengthSize + text.size();
  const auto checksums = place_of_checksums(text);
  if (checksums &&
      text.substr(*checksums, kChecksumDigits) != checksum_text(header_checksum(text, *checksums)))
    throw Error(path,
                ": the header differs from its checksum: the file is damaged, or another program has "
                "changed it; to open it all the same, remove '",
                kChecksums, "' from its __metadata__");
  const json header = parse_header(text, path);
  std::vector<std::pair<std::string, TensorEntry>> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) throw Error(path, ": '__metadata__' must be an object");
      for (const auto& [key, entry] : value.items()) {
        if (!entry.is_string()) throw Error(path, ": '__metadata__' has a '", key, "' that is not a string");
        metadata_.emplace(key, entry.get<std::string>());
      }
      continue;
    }
    entries.emplace_back(name, parse_entry(path, name, value));
  }
  std::ranges::sort(entries, {},
                    [](const auto& each) { return std::pair(each.second.begin, each.second.end); });

  // The format requires that tensors cover the data part without gaps or overlaps.
  std::size_t expected = 0;
  for (auto& [name, entry] : entries) {
    if (entry.begin < expected) throw Error(path, ": tensor '", name, "' overlaps the one before it");
    if (entry.begin > expected)
      throw Error(path, ": ", entry.begin - expected, " unused bytes before tensor '", name, "'");
    expected = entry.end;
    add(name, std::move(entry));
  }
  if (const auto found = metadata_.extract(kChecksums)) checksums_ = std::move(found.mapped());
  if (!checksums_.empty() && checksums_.size() != kChecksumDigits * (1 + entries.size()))
    throw Error(path, ": '", kChecksums, "' in its __metadata__ is not of as many tensors as it has");
  const std::size_t present = file_->bytes().size() - data_start_;
  if (present < expected)
    throw Error(path, ": truncated: tensor '", names().back(), "' ends at byte ", expected,
                " of the data, which has ", present);
  if (present > expected)
    throw Error(path, ": ", present - expected, " bytes more than the header describes");
}

std::span<std::byte> SafetensorsFile::bytes_of_rows(const TensorEntry& entry, std::int64_t begin,
                                                    std::int64_t end) const {
  const std::int64_t rows = entry.shape.empty() ? 1 : std::max<std::int64_t>(entry.shape.front(), 1);
  const std::size_t row = (entry.end - entry.begin) / static_cast<std::size_t>(rows);
  return {file_->data() + data_start_ + entry.begin + static_cast<std::size_t>(begin) * row,
          static_cast<std::size_t>(end - begin) * row};
}

at::Tensor SafetensorsFile::numbers_in(std::span<std::byte> bytes, const TensorEntry& entry,
                                       const std::vector<std::int64_t>& shape) const {
  if (bytes.empty()) return at::empty(shape, entry.dtype);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % c10::elementSize(entry.dtype) != 0) {
    at::Tensor copy = at::empty(shape, entry.dtype);
    std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
    return copy;
  }
  const auto keep_mapped = [file = file_](void*) {};
  return at::from_blob(bytes.data(), shape, keep_mapped, at::TensorOptions().dtype(entry.dtype));
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const TensorEntry& entry = this->entry(name);
  std::byte* data = file_->data() + data_start_ + entry.begin;
  return numbers_in({data, entry.end - entry.begin}, entry, entry.shape);
}

at::Tensor SafetensorsFile::rows(const std::string& name, std::int64_t begin, std::int64_t end) const {
  const TensorEntry& entry = this->entry(name);
  std::vector<std::int64_t> shape = entry.shape;
  shape.at(0) = end - begin;
  return numbers_in(bytes_of_rows(entry, begin, end), entry, shape);
}

void SafetensorsFile::give_back(const std::string& name, std::int64_t begin, std::int64_t end) const {
  const std::span<std::byte> bytes = bytes_of_rows(entry(name), begin, end);
  MappedFile::give_back(bytes.data(), bytes.size());
}

bool SafetensorsFile::verify() const {
  if (checksums_.empty()) return false;
  std::size_t place = kChecksumDigits;  // after the header's
  for (const std::string& name : names()) {
    const TensorEntry& one = entry(name);
    const std::byte* bytes = file_->data() + data_start_ + one.begin;
    if (checksums_.substr(place, kChecksumDigits) != checksum_text(crc32c(bytes, one.end - one.begin)))
      throw Error(path(), ": tensor '", name, "' differs from its checksum: the file is damaged");
    place += kChecksumDigits;
  }
  return true;
}

const char* safetensors_name(at::ScalarType dtype) {
  for (const auto& [type, name] : kTypes)
    if (dtype == type) return name;
  return nullptr;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Ordered, so that the header lists the tensors in the order of their bytes.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::map<std::string, std::string> with_checksums = metadata;
  with_checksums[kChecksums] = std::string(kChecksumDigits * (1 + tensors.size()), '0');
  header["__metadata__"] = with_checksums;
  // Its [] would look at all names before.
  nlohmann::ordered_json::object_t::Container& entries = header.get_ref<nlohmann::ordered_json::object_t&>();
  std::set<std::string> names;
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = safetensors_name(tensor.scalar_type());
    if (dtype == nullptr)
      throw Error(path, ": tensor '", name, "' has a type that safetensors does not have");
    if (name == "__metadata__") throw Error(path, ": '__metadata__' cannot be the name of a tensor");
    if (!names.insert(name).second) throw Error(path, ": two tensors are named '", name, "'");
    nlohmann::ordered_json entry{{"dtype", dtype},
                                 {"shape", tensor.sizes().vec()},
                                 {"data_offsets", {offset, offset + tensor.nbytes()}}};
    entries.emplace_back(name, std::move(entry));
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  // The data starts at a multiple of 64 bytes, a cache line, as panels of packed weights need it.
  text.resize((8 + text.size() + 63) / 64 * 64 - 8, ' ');

  AtomicFile file(path);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  file.write(length);
  file.write(text);
  // The checksums are known when the tensors are written.
  const std::size_t place = place_of_checksums(text).value();
  std::size_t digits = place;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor contiguous = tensor.detach().cpu().contiguous();
    file.write(contiguous.const_data_ptr(), contiguous.nbytes());
    text.replace(digits += kChecksumDigits, kChecksumDigits,
                 checksum_text(crc32c(contiguous.const_data_ptr(), contiguous.nbytes())));
  }
  text.replace(place, kChecksumDigits, checksum_text(header_checksum(text, place)));
  file.rewrite(length.size(), text);
  file.commit();
}

}  // namespace zoo
