#include "data/base/gguf_writer.h"

#include <type_traits>

#include "data/base/atomic_file.h"

namespace zoo {
namespace {

// The next multiple of the format's alignment.
std::size_t aligned(std::size_t size) { return (size + 31) / 32 * 32; }

class Bytes {
 public:
  template <class Number> void put(Number value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put<std::uint64_t>(text.size());
    text_ += text;
  }
  void pad() { text_.resize(aligned(text_.size()), '\0'); }
  const std::string& all() const { return text_; }

 private:
  std::string text_;
};

// The format's numbers of types.
template <class T>
constexpr std::uint32_t kType = std::is_same_v<T, std::uint8_t>    ? 0
                                : std::is_same_v<T, std::uint32_t> ? 4
                                : std::is_same_v<T, std::int32_t>  ? 5
                                : std::is_same_v<T, float>         ? 6
                                : std::is_same_v<T, bool>          ? 7
                                                                   : 8;  // text
constexpr std::uint32_t kList = 9;

void put_value(Bytes& bytes, const GgufValue& value) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
          bytes.put(kType<T>);
          bytes.put(value);
        } else {
          bytes.put(kList);
          bytes.put(kType<typename T::value_type>);
          bytes.put<std::uint64_t>(value.size());
          for (const auto& element : value) bytes.put(element);
        }
      },
      value);
}

std::size_t size_of(const GgufOutput& tensor) {
  std::size_t numbers = 1;
  for (const std::int64_t size : tensor.shape) numbers *= static_cast<std::size_t>(size);
  return numbers / tensor.type->block * tensor.type->bytes;
}

}  // namespace

void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata,
                const std::vector<GgufOutput>& tensors,
                const std::function<void(const std::filesystem::path&)>& check) {
  Bytes header;
  header.put<std::uint32_t>(0x46554747);  // "GGUF"
  header.put<std::uint32_t>(3);
  header.put<std::uint64_t>(tensors.size());
  header.put<std::uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) {
    header.put(key);
    put_value(header, value);
  }
  std::uint64_t offset = 0;
  for (const GgufOutput& tensor : tensors) {
    header.put(tensor.name);
    header.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) header.put(*size);
    header.put(tensor.type->id);
    header.put(offset);
    offset += aligned(size_of(tensor));
  }
  header.pad();
  AtomicFile file(path);
  file.write(header.all());
  for (const GgufOutput& tensor : tensors) {
    std::string bytes = tensor.bytes();
    bytes.resize(aligned(bytes.size()), '\0');
    file.write(bytes);
  }
  if (check) check(file.written());
  file.commit();
}

}  // namespace zoo
