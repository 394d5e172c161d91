#include "models/script/export.h"

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/export_huggingface.h"
#include "apps/verbs/torch_options.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/save_gguf.h"
#include "models/generation/generation_config.h"
#include "models/script/verify.h"
#include "tokenizer/files/gguf_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  fs::path model, output;
  std::string format = "torchscript";
  bool verify = false;
  bool dtype_given = false;
  std::string weights = "f16";
  ComputeOptions compute;
};

bool parse(const Arguments& arguments, ExportFlags& values) {
  Flags flags(arguments.command, "Converts a model for use in other programs.");
  flags.group("Export");
  add_model_flag(flags, values.model);
  flags.choice(
      "format", values.format, {"torchscript", "huggingface", "gguf"},
      "torchscript: one file that runs without tzoo; huggingface: a directory for transformers; gguf: "
      "one file for llama.cpp");
  flags.add("output", values.output, "file or directory to write").placeholder("PATH").required();
  flags.choice(
      "weights", values.weights, {"f32", "f16", "bf16", "q8_0", "q4_0"},
      "with --format gguf: type of matrices; those whose rows the blocks of 32 do not divide are f16");
  flags.add("verify", values.verify, "load the result and compare its outputs with the model's");
  flags.add_compute(values.compute);
  flags.example("tzoo export --model runs/kjv-char/final --output kjv.pt --verify");
  if (!flags.parse(arguments)) return false;
  if (values.format == "gguf" && values.verify) throw UsageError("--verify does not go with --format gguf");
  if (values.format != "gguf" && flags.given("weights")) throw UsageError("--weights needs --format gguf");
  values.dtype_given = flags.given("dtype");
  return true;
}

std::string scientific(double value) {
  std::ostringstream text;
  text << std::scientific << std::setprecision(1) << value;
  return text.str();
}

const char* dtype_word(at::ScalarType dtype) {
  return dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
}

void print_written(const fs::path& path, std::int64_t bytes, std::int64_t tensors, at::ScalarType dtype) {
  std::cout << "wrote " << path.string() << ": " << human_bytes(bytes) << ", " << tensors << " tensors, "
            << dtype_word(dtype) << "\n";
}

void print_report(const VerifyReport& report) {
  for (const VerifyReport::Comparison& entry : report.logits) {
    std::cout << "verified outputs of [" << entry.batch << ", " << entry.length << "]"
              << (entry.padded ? " padded" : "") << ": relative error " << scientific(entry.error) << "\n";
  }
  if (report.greedy_tokens == 0) return;
  std::cout << "verified generate: " << report.greedy_tokens - report.greedy_different << " of "
            << report.greedy_tokens << " greedy tokens equal\n";
}

void export_script(const ExportFlags& values) {
  const at::ScalarType dtype = dtype_of(values.compute);
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  const GenerationDefaults defaults = defaults_of(read_generation_config(values.model, checkpoint.json));
  const LoadedModel loaded = load_model(checkpoint, {.dtype = dtype, .device = device_of(values.compute)});
  export_torchscript(*loaded.model, *loaded.family, loaded.head, values.output,
                     {.dtype = dtype, .eos_ids = defaults.eos_token_ids, .pad_id = defaults.pad_token_id});
  print_written(values.output, static_cast<std::int64_t>(fs::file_size(values.output)),
                static_cast<std::int64_t>(loaded.model->parameters().size()), dtype);
  if (!values.verify) return;
  const VerifyReport report = verify_torchscript(values.output, *loaded.model);
  print_report(report);
  if (report.good()) return;
  throw Error(values.output, " does not compute what the model computes: relative error ",
              scientific(report.largest_error()), " (expected at most ", scientific(report.tolerance), "), ",
              report.greedy_different, " of ", report.greedy_tokens, " greedy tokens differ");
}

void export_directory(const ExportFlags& values) {
  std::optional<at::ScalarType> dtype;
  if (values.dtype_given) dtype = dtype_of(values.compute);
  const HuggingFaceExport written = export_huggingface(values.model, values.output, dtype);
  print_written(values.output, written.bytes, written.tensors, written.dtype);
  for (const std::string& name : written.unused) std::cout << "left out, of another head: " << name << "\n";
  if (!values.verify) return;
  std::cout << "verified " << verify_huggingface(values.model, values.output)
            << " tensors: equal in every bit\n";
  if (!written.unused.empty())
    std::cout << "not verified: " << written.unused.size() << " tensors of the source that are left out\n";
}

void export_gguf(const ExportFlags& values) {
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  if (!has_tokenizer(values.model))
    throw Error("--model: ", values.model, " holds no tokenizer, which GGUF needs");
  const auto tokenizer = load_tokenizer(values.model, checkpoint.family->model_type);
  const GgufMetadata metadata = gguf_metadata_of(*tokenizer, checkpoint.config.vocab_size);
  const LoadedModel loaded = load_model(checkpoint);
  std::string type = values.weights;
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::toupper(c); });
  save_gguf(*loaded.model, *loaded.family, loaded.head, values.output, type, metadata);
  std::cout << "wrote " << values.output.string() << ": "
            << human_bytes(static_cast<std::int64_t>(fs::file_size(values.output))) << ", "
            << GgufFile(values.output).tensors().size() << " tensors, " << values.weights << "\n";
}

}  // namespace

int run_export(const Arguments& arguments) {
  ExportFlags values;
  if (!parse(arguments, values)) return 0;
  apply_threads(values.compute);
  if (values.format == "torchscript") {
    export_script(values);
  } else if (values.format == "gguf") {
    export_gguf(values);
  } else {
    export_directory(values);
  }
  return 0;
}

}  // namespace zoo
