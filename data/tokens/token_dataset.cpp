#include "data/tokens/token_dataset.h"

#include <future>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/corpora/sha256.h"
#include "tokenizer/files/json_section.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormatVersion = 1;
constexpr const char *kTrain = "train.bin", *kVal = "val.bin";

std::int64_t integer(const JsonSection& meta, const char* key, std::int64_t least, std::int64_t most) {
  const nlohmann::json* value = meta.find(key);
  if (value == nullptr) throw Error(meta.file(), ": the key ", key, " is missing");
  const bool fits = value->is_number_unsigned() &&
                    value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most) &&
                    value->get<std::int64_t>() >= least;
  if (!fits)
    throw Error(meta.file(), ": ", key, " must be an integer from ", least, " to ", most, ", found ",
                value->dump());
  return value->get<std::int64_t>();
}

TokenWidth width_of(const JsonSection& meta) {
  const std::string dtype = meta.text("dtype");
  if (dtype == "uint16") return TokenWidth::kUint16;
  if (dtype == "uint32") return TokenWidth::kUint32;
  throw Error(meta.file(), ": dtype must be uint16 or uint32, found '", dtype, "'");
}

TokenFile load_split(const fs::path& path, const JsonSection& meta, const char* count_key,
                     std::int64_t vocab_size) {
  TokenFile tokens(path, width_of(meta));
  const auto count = integer(meta, count_key, 0, std::numeric_limits<std::int64_t>::max());
  if (tokens.size() != static_cast<std::size_t>(count))
    throw Error(path, ": expected ", count, " tokens of ", meta.text("dtype"), " (", count_key,
                " in meta.json), the file has ", tokens.size());
  tokens.require_ids_below(vocab_size);
  return tokens;
}

// Appends the ids of a text to a file, called `name` in messages; returns their number.
std::size_t encode_into(AtomicFile& file, std::string_view text, const Tokenizer& tokenizer,
                        const TextEncoder& encoder, const std::string& name, std::size_t threads,
                        const std::function<void(std::size_t)>& progress) {
  const std::int64_t vocab_size = tokenizer.vocab_size();
  std::size_t count = 0;
  encode_in_parts(text, encoder, threads, [&](std::span<const TokenId> ids, std::size_t bytes) {
    require_ids_below(ids, vocab_size, name, count);
    write_ids(ids, token_width(vocab_size), file);
    count += ids.size();
    progress(bytes);
  });
  return count;
}

}  // namespace

std::size_t validation_begin(std::string_view text) {
  // In double precision, as Python's int(n * 0.9).
  auto left = static_cast<std::size_t>(static_cast<double>(count_characters(text)) * 0.9);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!continues_character(text[i]) && left-- == 0) return i;
  return text.size();
}

TokenFile tokens_on_disk(std::string_view text, const Tokenizer& tokenizer, const TextEncoder& encoder,
                         const std::string& name, const fs::path& directory,
                         const std::function<void(std::size_t)>& progress) {
  make_directories(directory);
  AtomicFile file(directory / "tokens.bin");  // never committed: unlinked while it is mapped
  encode_into(file, text, tokenizer, encoder, name, 0, progress);
  return TokenFile(file.written(), token_width(tokenizer.vocab_size()), name);
}

TokenDataset tokenize_dataset(std::string_view text, const Tokenizer& tokenizer) {
  require_utf8(text, "the text of the dataset");
  const std::size_t position = validation_begin(text);
  const auto encoded = [&](std::string_view split, const char* name) {
    TokenIds ids;
    encode_in_parts(split, TextEncoder::of(tokenizer), 0, [&](std::span<const TokenId> more, std::size_t) {
      ids.insert(ids.end(), more.begin(), more.end());
    });
    TokenFile tokens(std::move(ids), name);
    tokens.require_ids_below(tokenizer.vocab_size());
    return tokens;
  };
  return {.train = encoded(text.substr(0, position), "the training split"),
          .val = encoded(text.substr(position), "the validation split"),
          .vocab_size = tokenizer.vocab_size()};
}

TokenCounts write_text_as_tokens(const fs::path& directory, std::string_view text, std::size_t validation,
                                 const Tokenizer& tokenizer, const TextEncoder& encoder, std::size_t threads,
                                 const std::function<void(std::size_t)>& progress) {
  require_utf8(text, "the text of the dataset");
  const std::int64_t vocab_size = tokenizer.vocab_size();
  const TokenWidth width = token_width(vocab_size);
  std::future<std::string> hash = std::async(std::launch::async, [&] { return sha256(text); });
  make_directories(directory);
  remove_token_dataset(directory);
  TokenCounts counts;
  AtomicFile train(directory / kTrain), val(directory / kVal);
  counts.train = encode_into(train, text.substr(0, validation), tokenizer, encoder, "the training split",
                             threads, progress);
  counts.val = encode_into(val, text.substr(validation), tokenizer, encoder, "the validation split", threads,
                           [&](std::size_t bytes) { progress(validation + bytes); });
  write_json(directory / "meta.json", {{"format_version", kFormatVersion},
                                       {"dtype", width == TokenWidth::kUint16 ? "uint16" : "uint32"},
                                       {"vocab_size", vocab_size},
                                       {"tokenizer", tokenizer.kind()},
                                       {"train_tokens", counts.train},
                                       {"val_tokens", counts.val},
                                       {"source_sha256", hash.get()}});
  val.commit();
  train.commit();  // last: marks the dataset as complete
  return counts;
}

void remove_token_dataset(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory / kTrain, ignored);
}

bool is_token_dataset(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / kTrain, error);
}

TokenDataset load_token_dataset(const fs::path& directory) {
  const fs::path train = directory / kTrain, val = directory / kVal;
  const fs::path meta_file = directory / "meta.json";
  std::error_code error;
  if (!fs::exists(meta_file, error))
    return {.train = TokenFile(train, TokenWidth::kUint16), .val = TokenFile(val, TokenWidth::kUint16)};
  const nlohmann::json values = read_json(meta_file);
  const JsonSection meta(meta_file, "", values);
  integer(meta, "format_version", kFormatVersion, kFormatVersion);
  const std::int64_t vocab_size = integer(meta, "vocab_size", 1, std::numeric_limits<TokenId>::max());
  for (const char* key : {"tokenizer", "source_sha256"}) meta.text(key);  // for people; checked all the same
  return {.train = load_split(train, meta, "train_tokens", vocab_size),
          .val = load_split(val, meta, "val_tokens", vocab_size),
          .vocab_size = vocab_size};
}

}  // namespace zoo
