#include "data/corpora/unpacked_files.h"

#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include <glob.h>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/corpora/child_process.h"
#include "data/corpora/corpora.h"
#include "data/corpora/sha256.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// For each ending the program that writes a file's content to its standard output, with its flags.
const std::map<std::string, std::vector<std::string>> kUnpackers{
    {".gz", {"gzip", "-dcq"}}, {".zst", {"zstd", "-dcq"}}, {".parquet", {"tzoo-parquet"}}};

bool is_file_to_unpack(const fs::path& file) { return kUnpackers.contains(file.extension()); }

std::vector<std::string> unpacker_of(const fs::path& file) {
  if (!is_file_to_unpack(file)) return {"cat"};
  std::vector<std::string> command = kUnpackers.at(file.extension());
  const fs::path beside = fs::canonical("/proc/self/exe").replace_filename(command[0]);
  if (fs::exists(beside)) command[0] = beside;
  return command;
}

// What decides how the content is read: the ending below the packing.
std::string kind_of(const fs::path& file) {
  if (file.extension() == ".parquet") return ".jsonl";
  return is_file_to_unpack(file) ? file.stem().extension() : file.extension();
}

std::vector<fs::path> files_of(const std::string& dataset) {
  if (fs::exists(dataset)) return {dataset};
  glob_t found{};
  const int fault = ::glob(dataset.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (fault == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty()) throw Error("'", dataset, "': no such file");
  for (const fs::path& file : files) {
    if (kind_of(file) != kind_of(files[0]))
      throw Error(dataset, ": ", files[0], " and ", file, " are of different kinds");
  }
  if (files.size() > 1 && kind_of(files[0]) == ".tsv")
    throw Error(dataset, ": several .tsv files, each with a header, are not joined; use .jsonl");
  return files;
}

// Changes with each file's place, size and time.
std::string key_of(const std::vector<fs::path>& files) {
  std::ostringstream known;
  for (const fs::path& file : files)
    known << fs::canonical(file) << fs::file_size(file) << ' '
          << fs::last_write_time(file).time_since_epoch().count() << '\n';
  return sha256(known.str()).substr(0, 12);
}

bool ends_in_a_line(const fs::path& file) {
  std::ifstream text(file);
  return !text.seekg(-1, std::ios::end) || text.get() == '\n';
}

void append(const fs::path& file, const fs::path& target) {
  std::vector<std::string> command = unpacker_of(file);
  command.push_back(fs::absolute(file));
  const std::optional<ChildResult> result = run_program(command, target);
  if (!result && file.extension() == ".parquet")
    throw Error(file, ": is read by tzoo-parquet, which is built where third_party/install.sh found Arrow");
  if (!result) throw Error(file, ": ", command[0], " is not installed, which unpacks it");
  if (result->exit_code != 0) throw Error(file, ": cannot be unpacked: ", result->reason());
  std::cerr << result->error_output;
}

}  // namespace

bool is_packed(const std::string& dataset) {
  if (fs::exists(dataset)) return is_file_to_unpack(dataset) && !fs::is_directory(dataset);
  return is_file_to_unpack(dataset) || dataset.find_first_of("*?[") != std::string::npos;
}

fs::path unpacked(const std::string& dataset) {
  const std::vector<fs::path> files = files_of(dataset);
  if (files.size() == 1 && !is_file_to_unpack(files[0])) return files[0];
  const fs::path folder = data_directory() / "unpacked";
  const fs::path path = folder / (files[0].stem().string() + "-" + key_of(files) + kind_of(files[0]));
  if (fs::exists(path)) return path;
  std::cerr << "note: unpacking " << dataset << " into " << path << "\n";
  make_directories(folder);
  AtomicFile whole(path);
  for (const fs::path& file : files) {
    if (!ends_in_a_line(whole.written())) std::ofstream(whole.written(), std::ios::app) << '\n';
    append(file, whole.written());
  }
  whole.commit();
  return path;
}

}  // namespace zoo
