#include "data/base/gguf_writer.h"

#include <type_traits>

#include "data/base/atomic_file.h"

namespace zoo {
namespace {

constexpr std::size_t kAlignment = 32;

class Bytes {
 public:
  template <class T> void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    number<std::uint64_t>(text.size());
    text_ += text;
  }
  void pad() { text_.resize((text_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }
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

void put(Bytes& bytes, const std::string& text) { bytes.text(text); }

template <class T> void put(Bytes& bytes, T value) { bytes.number(value); }

void put_value(Bytes& bytes, const GgufValue& value) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
          bytes.number(kType<T>);
          put(bytes, value);
        } else {
          bytes.number(kList);
          bytes.number(kType<typename T::value_type>);
          bytes.number<std::uint64_t>(value.size());
          for (const auto& element : value) put(bytes, element);
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
  header.number<std::uint32_t>(0x46554747);  // "GGUF"
  header.number<std::uint32_t>(3);
  header.number<std::uint64_t>(tensors.size());
  header.number<std::uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) {
    header.text(key);
    put_value(header, value);
  }
  std::uint64_t offset = 0;
  for (const GgufOutput& tensor : tensors) {
    header.text(tensor.name);
    header.number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) header.number(*size);
    header.number(tensor.type->id);
    header.number(offset);
    offset += (size_of(tensor) + kAlignment - 1) / kAlignment * kAlignment;
  }
  header.pad();
  AtomicFile file(path);
  file.write(header.all());
  for (const GgufOutput& tensor : tensors) {
    std::string bytes = tensor.bytes();
    bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
    file.write(bytes);
  }
  if (check) check(file.written());
  file.commit();
}

}  // namespace zoo
