#pragma once

/// @file
/// Use:
///
///     zoo::TeacherFile file("teacher.topk", /*made_by=*/"gpt2 at temperature 1", /*top_k=*/32);
///     const zoo::TopTokens known = file.find(inputs, [&] { return zoo::top_tokens(teacher(inputs), 1, 32);
///     });

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>

#include "apps/training/distillation_loss.h"
#include "data/base/append_file.h"

namespace zoo {

/// What a teacher answered, on disk, so that it reads each document once: for later epochs, resumed runs and
/// other students. A document is found by the hash of its ids and of the positions that were asked for.
class TeacherFile {
 public:
  /// Opens `path` or begins it. `made_by` names all that the answers hang on besides the document. A record
  /// that a kill cut short is dropped. Throws Error naming the file if it was made by another teacher, is
  /// damaged, or is open in another process.
  TeacherFile(const std::filesystem::path& path, const std::string& made_by, std::int64_t top_k);

  /// The answers at the N label_positions of a causal model's inputs. `ask` gives those of all documents and
  /// is called if one of them is new. Throws Error if the disk is full.
  TopTokens find(const ModelInputs& inputs, const std::function<TopTokens()>& ask);

 private:
  void read_records();
  std::size_t bytes_of(std::int64_t count) const;
  void read(void* bytes, std::size_t size, std::size_t begin) const;
  void cut() const;
  void append(const std::string& key, std::int64_t count, const std::string& values);

  AppendFile file_;
  std::int64_t top_k_;
  std::size_t end_ = 0;                                   // of the records
  std::unordered_map<std::string, std::size_t> records_;  // by key: where the values begin
};

}  // namespace zoo
