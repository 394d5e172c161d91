#include "apps/training/teacher_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/crc32c.h"
#include "data/base/error.h"
#include "data/corpora/sha256.h"

namespace zoo {
namespace {

// The file: a line of text, then records: a Head, K ids of each position, K + 1 log-probabilities of each.
constexpr std::size_t kKeySize = 32;
struct Head {
  char key[kKeySize];
  std::uint32_t count, checksum;  // positions; crc32c of the key, the count and the values
};

std::uint32_t checksum_of(const Head& head, const std::string& values) {
  return crc32c(values.data(), values.size(), crc32c(&head, offsetof(Head, checksum)));
}

// A document's ids up to the last position that is asked for, as a causal model sees no more, and the
// positions.
struct Asked {
  std::string key;
  std::int64_t begin = 0, count = 0;  // among the N positions
};

std::vector<Asked> documents_of(const ModelInputs& inputs) {
  const at::Tensor ids = inputs.input_ids.cpu().contiguous(), positions = inputs.label_positions.cpu();
  const auto* id = ids.const_data_ptr<std::int64_t>();
  const auto* position = positions.const_data_ptr<std::int64_t>();
  std::vector<Asked> found;
  std::int64_t start = 0, next = 0;
  for (const std::int64_t length : inputs.document_lengths()) {
    Asked document{.begin = next};
    std::vector<std::int64_t> content;
    for (; next < positions.numel() && position[next] < start + length; ++next)
      content.push_back(position[next] - start);
    document.count = next - document.begin;
    if (document.count > 0) {
      content.insert(content.end(), id + start, id + start + content.back() + 1);
      content.push_back(document.count);
      const auto* bytes = reinterpret_cast<const char*>(content.data());
      document.key = sha256({bytes, content.size() * sizeof content[0]}).substr(0, kKeySize);
      found.push_back(std::move(document));
    }
    start += length;
  }
  return found;
}

}  // namespace

TeacherFile::TeacherFile(const std::filesystem::path& path, const std::string& made_by, std::int64_t top_k)
    : file_(path), top_k_(top_k) {
  if (::flock(file_.descriptor(), LOCK_EX | LOCK_NB) != 0)
    throw Error(path, " is in use by another run, which writes it");
  const std::string line = "tzoo teacher 1: " + std::to_string(top_k_) + " tokens by " + made_by + "\n";
  std::string first(line.size(), '\0');
  const ssize_t count = ::pread(file_.descriptor(), first.data(), first.size(), 0);
  if (count < 0) throw Error("cannot read ", path, ": ", std::strerror(errno));
  first.resize(static_cast<std::size_t>(count));
  if (!line.starts_with(first))
    throw Error(path, " has other answers than these: ", line.substr(0, line.size() - 1));
  if (first != line) {
    cut();
    file_.append(line);
  }
  end_ = line.size();
  read_records();
}

std::size_t TeacherFile::bytes_of(std::int64_t count) const {
  return static_cast<std::size_t>(count * (top_k_ * 2 + 1)) * sizeof(float);
}

void TeacherFile::read_records() {
  struct stat status {};
  if (::fstat(file_.descriptor(), &status) != 0)
    throw Error("cannot read ", file_.path(), ": ", std::strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string values;
  while (size - end_ >= sizeof(Head)) {
    Head head;
    read(&head, sizeof head, end_);
    const std::size_t begin = end_ + sizeof head, bytes = bytes_of(head.count);
    constexpr std::uint32_t kMostPositions = 1 << 24;  // of a document; more are a damaged number
    bool is_good = bytes <= size - begin;
    if (!is_good && head.count <= kMostPositions) break;  // a kill has cut it short
    if (is_good) {
      values.resize(bytes);
      read(values.data(), bytes, begin);
      is_good = checksum_of(head, values) == head.checksum;
    }
    if (!is_good)
      throw Error(file_.path(), " is damaged at byte ", end_, "; delete it, and the teacher is asked again");
    records_[std::string(head.key, kKeySize)] = begin;
    end_ = begin + bytes;
  }
  if (end_ != size) cut();
}

void TeacherFile::cut() const {
  if (::ftruncate(file_.descriptor(), static_cast<off_t>(end_)) != 0)
    throw Error("cannot write ", file_.path(), ": ", std::strerror(errno));
}

void TeacherFile::read(void* bytes, std::size_t size, std::size_t begin) const {
  const ssize_t count = ::pread(file_.descriptor(), bytes, size, static_cast<off_t>(begin));
  if (count != static_cast<ssize_t>(size))
    throw Error("cannot read ", file_.path(), ": ",
                count < 0 ? std::strerror(errno) : "it has become shorter");
}

void TeacherFile::append(const std::string& key, std::int64_t count, const std::string& values) {
  Head head{.count = static_cast<std::uint32_t>(count)};
  std::memcpy(head.key, key.data(), kKeySize);
  head.checksum = checksum_of(head, values);
  file_.append(std::string(reinterpret_cast<const char*>(&head), sizeof head) + values);
  records_[key] = end_ + sizeof head;
  end_ += sizeof head + values.size();
}

TopTokens TeacherFile::find(const ModelInputs& inputs, const std::function<TopTokens()>& ask) {
  const std::vector<Asked> documents = documents_of(inputs);
  const std::int64_t count = inputs.label_positions.numel();
  TopTokens found{at::empty({count, top_k_}, at::kInt), at::empty({count, top_k_ + 1})};
  // Of positions [begin, begin + count): where their ids and log-probabilities lie, and how many bytes.
  const auto parts = [&](const Asked& document) {
    const auto bytes = [&](std::int64_t width) {
      return static_cast<std::size_t>(document.count * width) * sizeof(float);
    };
    return std::array{
        std::pair(static_cast<char*>(found.ids[document.begin].data_ptr()), bytes(top_k_)),
        std::pair(static_cast<char*>(found.log_probs[document.begin].data_ptr()), bytes(top_k_ + 1))};
  };
  const auto is_known = [&](const Asked& document) { return records_.contains(document.key); };
  if (!std::ranges::all_of(documents, is_known)) {
    const TopTokens asked = ask();
    found = {asked.ids.to(at::kInt).cpu().contiguous(), asked.log_probs.cpu().contiguous()};
    for (const Asked& document : documents) {
      if (is_known(document)) continue;
      std::string values;
      for (const auto& [begin, size] : parts(document)) values.append(begin, size);
      append(document.key, document.count, values);
    }
    return asked;
  }
  for (const Asked& document : documents) {
    std::size_t place = records_.at(document.key);
    for (const auto& [begin, size] : parts(document)) {
      read(begin, size, place);
      place += size;
    }
  }
  return {found.ids.to(at::kLong), found.log_probs};
}

}  // namespace zoo
