#include "data/tokens/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "data/base/error.h"
#include "data/base/mapped_file.h"

namespace zoo {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and mapped as they are");

template <class T>
void require_below(std::span<const T> ids, std::int64_t vocab_size, const std::string& name,
                   std::size_t before) {
  if (ids.empty()) return;
  // Computes the maximum first: the compiler vectorises a loop without an early exit.
  T largest = 0;
  for (const T id : ids) largest = std::max(largest, id);
  if (static_cast<std::int64_t>(largest) < vocab_size) return;
  const auto first =
      std::ranges::find_if(ids, [=](T id) { return static_cast<std::int64_t>(id) >= vocab_size; });
  throw Error(name, ": the id ", *first, " at position ",
              before + static_cast<std::size_t>(first - ids.begin()), " is not below vocab_size ",
              vocab_size);
}

}  // namespace

TokenWidth token_width(std::int64_t vocab_size) {
  return vocab_size <= 65536 ? TokenWidth::kUint16 : TokenWidth::kUint32;
}

void write_ids(std::span<const TokenId> ids, TokenWidth width, AtomicFile& file) {
  if (width == TokenWidth::kUint32) return file.write(ids.data(), ids.size_bytes());
  std::array<std::uint16_t, 4096> narrow;
  while (!ids.empty()) {
    const std::size_t count = std::min(ids.size(), narrow.size());
    std::transform(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), narrow.begin(),
                   [](TokenId id) { return static_cast<std::uint16_t>(id); });
    file.write(narrow.data(), count * sizeof narrow[0]);
    ids = ids.subspan(count);
  }
}

void require_ids_below(std::span<const TokenId> ids, std::int64_t vocab_size, const std::string& name,
                       std::size_t first) {
  require_below(std::span(reinterpret_cast<const std::uint32_t*>(ids.data()), ids.size()), vocab_size, name,
                first);
}

TokenFile::TokenFile(const std::filesystem::path& path, TokenWidth width, std::string name)
    : name_(name.empty() ? path.string() : std::move(name)) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::size_t bytes = file->bytes().size(), each = static_cast<std::size_t>(width);
  if (bytes % each != 0)
    throw Error(path, ": expected ids of ", each, " bytes each, the file has ", bytes, " bytes");
  if (width == TokenWidth::kUint16) {
    ids_ = std::span(reinterpret_cast<const std::uint16_t*>(file->data()), bytes / each);
  } else {
    ids_ = std::span(reinterpret_cast<const std::uint32_t*>(file->data()), bytes / each);
  }
  owner_ = file;
}

TokenFile::TokenFile(TokenIds tokens, std::string name) : name_(std::move(name)) {
  const auto owned = std::make_shared<const TokenIds>(std::move(tokens));
  ids_ = std::span(reinterpret_cast<const std::uint32_t*>(owned->data()), owned->size());
  owner_ = owned;
}

void TokenFile::copy(std::size_t begin, std::span<std::int64_t> out) const {
  if (text_) return text_->read(begin, out);
  if (out.size() > size() || begin > size() - out.size())
    throw std::out_of_range(name_ + ": tokens are read past the end");
  std::visit([&](auto ids) { std::ranges::copy(ids.subspan(begin, out.size()), out.begin()); }, ids_);
}

void TokenFile::require_ids_below(std::int64_t vocab_size) const {
  std::visit([&](auto ids) { require_below(ids, vocab_size, name_, 0); }, ids_);
}

}  // namespace zoo
