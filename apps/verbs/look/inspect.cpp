#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/visible_text.h"
#include "apps/hub/hub_cache.h"
#include "apps/training/records/run_directory.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/registry.h"
#include "models/tasks/encoding_batch.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct RunEntry {
  fs::path path;
  std::optional<std::int64_t> iteration;  // none for best/ and final/, which do not store it
};

// Step checkpoints first, oldest first; empty if the directory is not a run.
std::vector<RunEntry> checkpoints_of_run(const fs::path& directory) {
  const RunDirectory run(directory, 0);
  std::vector<RunEntry> found;
  for (const std::int64_t step : run.steps()) {
    const fs::path path = run.step_path(step);
    found.push_back({path, fs::exists(path / kTrainerStateFile) ? read_trainer_state(path).iteration : step});
  }
  for (const char* name : {"best", "final"})
    if (fs::is_directory(directory / name)) found.push_back({directory / name, std::nullopt});
  return found;
}

// The last written checkpoint; on a tie, the last in the order of the run. Null if all are adapters.
const RunEntry* newest(const std::vector<RunEntry>& entries) {
  const auto weights = [](const RunEntry& entry) { return entry.path / "model.safetensors"; };
  const RunEntry* latest = nullptr;
  for (const RunEntry& entry : entries)
    if (fs::exists(weights(entry)) &&
        (latest == nullptr || fs::last_write_time(weights(entry)) >= fs::last_write_time(weights(*latest))))
      latest = &entry;
  return latest;
}

struct Findings {
  fs::path directory;
  CheckpointConfig checkpoint;
  std::shared_ptr<PackedParts> packed;  // null: weights of modules
  LoadReport report;
  std::int64_t parameters;
  std::map<std::string, bool> verified;                     // file: whether it has checksums
  std::map<std::string, std::int64_t> dtypes;               // dtype name: number of tensors
  std::map<std::string, std::int64_t> sizes;                // file: its size in bytes
  std::string tokenizer_kind, tokenizer_fault;              // both empty: no tokenizer
  std::int64_t tokenizer_size = 0, tokens_without_row = 0;  // ids beyond the model's vocabulary

  const WeightFiles& files() const { return packed ? packed->files() : checkpoint.files(); }
};

void find_tokenizer(Findings& findings) {
  try {
    if (!has_tokenizer(findings.checkpoint.directory)) return;
    const auto tokenizer = load_tokenizer(findings.checkpoint.directory, findings.checkpoint.json.get());
    findings.tokenizer_kind = std::string(tokenizer->kind());
    findings.tokenizer_size = tokenizer->vocab_size();
    require_fit(*tokenizer, findings.checkpoint.config, findings.directory);
    findings.tokens_without_row = findings.tokenizer_size - tokenizer->id_count();
  } catch (const Error& error) {  // unknown tokenizer kind; the weights may still be good
    findings.tokenizer_fault = error.what();
  }
}

const char* type_name(const TensorEntry& entry) {
  return entry.quantized != nullptr ? entry.quantized : safetensors_name(entry.dtype);
}

// Throws Error naming the file and the tensor that differs from its checksum.
std::map<std::string, bool> verify_files(const fs::path& directory) {
  std::map<std::string, bool> verified;
  if (fs::is_regular_file(directory)) return {{directory.filename().string(), false}};
  for (const auto& file : fs::directory_iterator(directory))
    if (file.path().extension() == ".safetensors")
      verified[file.path().filename().string()] = SafetensorsFile(file.path()).verify();
  return verified;
}

Findings examine(const ModelPath& directory) {
  const CheckpointConfig checkpoint = read_checkpoint_config(directory);
  const auto model = build_meta_model(*checkpoint.family, checkpoint.config, checkpoint.head);
  Findings findings{directory, checkpoint, checkpoint.packed_parts(), {}, model->parameter_count()};
  if (findings.packed) {
    check_packed_weights(checkpoint);
    findings.report.loaded = findings.files().names();
  } else {
    findings.report = inspect_weights(checkpoint);
  }
  for (const std::string& name : findings.files().names())
    ++findings.dtypes[type_name(findings.files().entry(name))];
  const auto add = [&](const fs::path& file) {
    if (fs::is_regular_file(file))
      findings.sizes[file.filename().string()] = static_cast<std::int64_t>(fs::file_size(file));
  };
  if (fs::is_regular_file(directory)) add(directory);  // a GGUF file
  else
    for (const auto& file : fs::directory_iterator(directory)) add(file.path());
  find_tokenizer(findings);
  return findings;
}

nlohmann::json to_json(const Findings& findings) {
  const CheckpointConfig& checkpoint = findings.checkpoint;
  const LoadReport& report = findings.report;
  nlohmann::json json{{"directory", findings.directory.string()},
                      {"model_type", checkpoint.family->model_type},
                      {"architecture", architecture_of(*checkpoint.family, checkpoint.head)},
                      {"head", name_of(checkpoint.head)},
                      {"config", checkpoint.family->write_config(checkpoint.config)},
                      {"parameters", findings.parameters},
                      {"dtypes", findings.dtypes},
                      {"good", report.good()},
                      {"loaded", report.loaded},
                      {"missing", report.missing},
                      {"unexpected", report.unexpected},
                      {"mismatched", report.mismatched},
                      {"tied", report.tied},
                      {"ignored", report.ignored},
                      {"unused", report.unused},
                      {"tokenizer", nullptr}};
  if (findings.packed)
    json["packed"] = {{"weights", findings.packed->weights()}, {"source", findings.packed->source()}};
  for (const auto& [name, bytes] : findings.sizes) json["files"][name] = bytes;
  for (const auto& [name, has_checksums] : findings.verified)
    json["verified"][name] = has_checksums ? nlohmann::json(true) : nlohmann::json(nullptr);
  if (!findings.tokenizer_kind.empty())
    json["tokenizer"] = {{"kind", findings.tokenizer_kind}, {"vocabulary", findings.tokenizer_size}};
  if (findings.tokens_without_row > 0) json["tokenizer"]["without_row"] = findings.tokens_without_row;
  if (!findings.tokenizer_fault.empty()) json["tokenizer"]["fault"] = findings.tokenizer_fault;
  return json;
}

nlohmann::json tensors_json(const WeightFiles& files) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const std::string& name : files.names()) {
    const auto& entry = files.entry(name);
    tensors.push_back({{"name", name}, {"dtype", type_name(entry)}, {"shape", entry.shape}});
  }
  return tensors;
}

std::string tokenizer_text(const Findings& findings) {
  std::string text =
      findings.tokenizer_kind.empty()
          ? ""
          : findings.tokenizer_kind + ", " + with_separators(findings.tokenizer_size) + " tokens";
  if (findings.tokens_without_row > 0)
    text += ", " + with_separators(findings.tokens_without_row) + " of them beyond the model's vocabulary";
  if (!findings.tokenizer_fault.empty())
    text += (text.empty() ? "not read: " : ", ") + findings.tokenizer_fault;
  return text.empty() ? "none" : text;
}

void print_model(const Findings& findings) {
  const CheckpointConfig& checkpoint = findings.checkpoint;
  Table table({{""}, {""}});
  table.row({"directory", findings.directory.string()});
  table.row({"model_type", checkpoint.family->model_type});
  table.row({"architecture",
             architecture_of(*checkpoint.family, checkpoint.head) + " (" + name_of(checkpoint.head) + ")"});
  const nlohmann::json config = checkpoint.family->write_config(checkpoint.config);
  for (const auto& [key, value] : config.items()) {
    if (!value.is_null())
      table.row({"  " + key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  table.row({"parameters", with_separators(findings.parameters)});
  if (findings.packed)
    table.row({"packed", findings.packed->weights() + ", from " + findings.packed->source()});
  std::string dtypes;
  for (const auto& [name, count] : findings.dtypes)
    dtypes += (dtypes.empty() ? "" : ", ") + name + " (" + std::to_string(count) + ")";
  table.row({"tensors", dtypes});
  table.row({"tokenizer", tokenizer_text(findings)});
  table.row({"files", ""});
  for (const auto& [name, bytes] : findings.sizes) table.row({"  " + name, human_bytes(bytes)});
  if (!findings.verified.empty()) table.row({"verified", ""});
  for (const auto& [name, has_checksums] : findings.verified)
    table.row({"  " + name, has_checksums ? "equal to its checksums" : "has no checksums to compare with"});
  table.print(std::cout);
}

void print_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::cout << what << " " << names.size() << ":\n";
  for (const std::string& name : names) std::cout << "  " << visible_text(name) << "\n";
}

void print_report(const LoadReport& report) {
  std::cout << "\nloaded " << report.loaded.size() << "\n";
  print_names("tied", report.tied);
  print_names("ignored", report.ignored);
  print_names("of other heads, unused", report.unused);
  print_names("missing", report.missing);
  print_names("unexpected", report.unexpected);
  print_names("mismatched", report.mismatched);
}

void print_tensors(const WeightFiles& files) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}});
  for (const std::string& name : files.names()) {
    const auto& entry = files.entry(name);
    table.row({name, type_name(entry), nlohmann::json(entry.shape).dump()});
  }
  std::cout << "\n";
  table.print(std::cout);
}

void print_run(const std::vector<RunEntry>& entries, const fs::path& run) {
  Table table({{"checkpoint"}, number("iteration")});
  for (const RunEntry& entry : entries)
    table.row(
        {fs::relative(entry.path, run).string(), entry.iteration ? std::to_string(*entry.iteration) : ""});
  table.print(std::cout);
  std::cout << (newest(entries) != nullptr ? "\nthe newest:\n"
                                           : "\nadapters (train --weights), without a model\n");
}

nlohmann::json run_json(const std::vector<RunEntry>& entries) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunEntry& entry : entries) {
    list.push_back({{"directory", entry.path.string()}, {"iteration", nullptr}});
    if (entry.iteration) list.back()["iteration"] = *entry.iteration;
  }
  return list;
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  ModelPath directory;
  bool as_json = false, tensors = false, verify = false;
  Flags flags(arguments.command,
              "Shows what a checkpoint holds and whether its tensors fit the model that its config.json "
              "describes. For the directory of a training run, lists the checkpoints and shows the newest.");
  add_model_flag(flags, directory,
                 "checkpoint directory, GGUF file, directory of a training run, or name of a model that "
                 "tzoo pull has downloaded");
  flags.group("Output");
  flags.add("tensors", tensors, "list every tensor with its type and shape");
  flags.add("verify", verify,
            "compare all bytes of .safetensors files with the checksums that tzoo writes into them; files of "
            "other programs have none");
  flags.add("json", as_json, "print one JSON object");
  flags.example("tzoo inspect runs/kjv-char/final --tensors");
  if (!flags.parse(arguments)) return 0;

  std::vector<RunEntry> run;
  if (!fs::exists(directory / "config.json")) run = checkpoints_of_run(directory);
  if (!run.empty() && !as_json) print_run(run, directory);
  const RunEntry* const latest = newest(run);
  if (!run.empty() && latest == nullptr) {
    if (as_json) std::cout << json_text(nlohmann::json{{"checkpoints", run_json(run)}}) << "\n";
    return 0;
  }
  Findings findings = examine(run.empty() ? directory : ModelPath(latest->path, directory.adapter));
  if (verify) findings.verified = verify_files(findings.directory);
  if (as_json) {
    nlohmann::json json = to_json(findings);
    if (!run.empty()) json["checkpoints"] = run_json(run);
    if (tensors) json["tensors"] = tensors_json(findings.files());
    std::cout << json_text(json) << "\n";
  } else {
    print_model(findings);
    print_report(findings.report);
    if (tensors) print_tensors(findings.files());
  }
  if (!findings.report.good()) {
    std::cout.flush();  // prints the findings before the error
    throw Error(findings.directory, ": the weights do not fit the model: ", findings.report.faults());
  }
  return 0;
}

}  // namespace zoo
