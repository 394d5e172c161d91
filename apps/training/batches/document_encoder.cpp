#include "apps/training/batches/document_encoder.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "apps/training/batches/encode_examples.h"
#include "data/base/error.h"

namespace zoo {
namespace {

std::size_t after_line(std::string_view text, std::size_t from) {
  const std::size_t end = text.find('\n', from == 0 ? 0 : from - 1);
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace

DocumentEncoder::DocumentEncoder(std::string_view file, std::string name, const Tokenizer& tokenizer,
                                 FileColumns names)
    : file_(file), name_(std::move(name)), tokenizer_(tokenizer), names_(std::move(names)) {
  if (!tokenizer.eos_id())
    throw Error(name_, ": its texts are documents, but the tokenizer has no token that ends one; ",
                "byte_bpe and sentencepiece have one");
  end_ = *tokenizer.eos_id();
}

std::string DocumentEncoder::sample(std::string_view file, const std::string& name, FileColumns names,
                                    std::size_t bytes) {
  std::string all;
  for (const Record& record :
       parse_records(file.substr(0, after_line(file, std::min(bytes, file.size()))), name, kDocuments, names))
    all += record.fields[0] + "\n";
  return all;
}

std::string DocumentEncoder::lines_of_table(std::string_view table, const std::string& name,
                                            FileColumns& names) {
  std::string all;
  for (const Record& record : parse_records(table, name, kDocuments, names))
    all += nlohmann::json{{"text", record.fields[0]}}.dump() + "\n";
  return all;
}

TextEncoder DocumentEncoder::encoder() {
  return {after_line, [this](std::string_view part) { return encode(part); }};
}

std::size_t DocumentEncoder::validation_begin(std::string_view file) {
  // In a file of few lines the last tenth may begin inside the last one, which then validates.
  const std::size_t tenth = std::min(file.size() / 10, kMostHeldOut);
  return std::min(after_line(file, file.size() - tenth), file.rfind('\n', file.find_last_not_of("\r\n")) + 1);
}

// The number of a line costs a look at all before it: an error alone is worth it.
template <class Read> auto DocumentEncoder::with_lines(std::string_view part, Read read) const {
  try {
    return read(1);
  } catch (const Error&) {
    read(1 + std::count(file_.data(), part.data(), '\n'));
    throw;
  }
}

void DocumentEncoder::check(std::string_view part) const {
  if (part.find_first_not_of("\r\n") == std::string_view::npos) return;
  FileColumns names{.own = names_.own, .renames = names_.renames};
  with_lines(part, [&](std::int64_t first_line) {
    return parse_records(part, name_, kDocuments, names, first_line);
  });
}

TokenIds DocumentEncoder::encode(std::string_view part) {
  if (part.find_first_not_of("\r\n") == std::string_view::npos) return {};
  FileColumns names{.own = names_.own, .renames = names_.renames};
  TokenIds ids = with_lines(part, [&](std::int64_t first_line) {
    const auto records = parse_records(part, name_, kDocuments, names, first_line);
    for (const Record& record : records) text_bytes_ += record.fields[0].size();
    return encode_documents(records, tokenizer_, end_, name_);
  });
  const std::lock_guard lock(mutex_);
  names_.ignored.merge(names.ignored);
  names_.empty_rows += names.empty_rows;
  return ids;
}

}  // namespace zoo
