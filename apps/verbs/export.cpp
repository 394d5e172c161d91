#include "models/script/export.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/export_formats.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generation_config.h"
#include "models/gguf/save_gguf.h"
#include "models/onnx/export.h"
#include "models/pt2/export.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/files/gguf_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  ModelPath model;
  fs::path output;
  std::string format = "torchscript";
  bool verify = false, json = false, decoding = false;
  bool dtype_given = false;
  std::string weights, calibration;
  std::vector<std::string> gallery;
  ComputeOptions compute;
};

void check_together(ExportFlags& values) {
  const bool gguf_lora = values.format == "gguf-lora", gguf = gguf_lora || values.format == "gguf",
             packed = values.format == "packed", onnx = values.format == "onnx",
             html = values.format == "html";
  if (values.verify && (gguf || packed || onnx || html))
    throw UsageError("--verify does not go with --format ", values.format);
  if (!html && !values.gallery.empty()) throw UsageError("--gallery needs --format html");
  if (values.decoding && values.format != "pt2") throw UsageError("--decoding needs --format pt2");
  if (!values.calibration.empty() && !(packed && values.weights == "int4"))
    throw UsageError("--calibration needs --format packed --weights int4");
  if (gguf_lora && values.model.adapter.empty()) throw UsageError("--format gguf-lora needs --adapter");
  if (!gguf && !packed && !html) {
    if (!values.weights.empty()) throw UsageError("--weights needs --format gguf, gguf-lora, packed or html");
    return;
  }
  if (values.dtype_given)
    throw UsageError("--dtype does not go with --format ", values.format, "; --weights names the type");
  if (html && values.weights.empty()) values.weights = "int8";
  if (gguf && values.weights.empty()) values.weights = gguf_lora ? "f32" : "f16";
  // Flags read "bf16" as "bfloat16".
  if (gguf && values.weights == "bfloat16") values.weights = "bf16";
  if (gguf && values.weights == "float32") values.weights = "f32";
  if (html ? values.weights != "int8" && values.weights != "float32"
           : gguf == weight_type_named(values.weights).has_value())
    throw UsageError("--format ", values.format, " needs --weights ",
                     html     ? "float32 or int8"
                     : packed ? "float32, bfloat16, int8 or int4"
                              : "f32, f16, bf16, q8_0 or q4_0",
                     values.weights.empty() ? "" : ", not ", values.weights);
}

// An export replaces a file that an earlier one wrote, and no other; nor what a training has made.
void check_export_file(const ExportFlags& values) {
  const fs::path output = values.output.has_filename() ? values.output : values.output.parent_path();
  const std::string name = output.filename().string();
  if ((name == "final" || name == "best") && fs::exists(output / "config.json") &&
      fs::exists(output.parent_path() / "run_config.json"))
    throw Error("--output: ", values.output, " is what a training has made; expected another directory");
  const bool script = values.format == "torchscript", pt2 = values.format == "pt2",
             html = values.format == "html";
  if ((!script && !pt2 && !html && !values.format.starts_with("gguf")) || !fs::exists(values.output)) return;
  if (fs::is_directory(values.output))
    throw Error("--output: ", values.output, " is a directory; expected a file");
  if (!fs::is_regular_file(values.output)) throw Error("--output: ", values.output, " is no regular file");
  check_output_file(values.model, values.output);
  const std::string_view begin = script || pt2 ? "PK\3\4" : html ? kHtmlBegin : "GGUF";
  std::string found(begin.size(), '\0');
  std::ifstream(values.output, std::ios::binary)
      .read(found.data(), static_cast<std::streamsize>(found.size()));
  if (found != begin || (begin == "PK\3\4" && is_pt2(values.output) != pt2))
    throw Error("--output: ", values.output, " exists and is no ",
                script ? "TorchScript"
                : pt2  ? "PT2"
                : html ? "HTML"
                       : "GGUF",
                " file; expected a new file, or an earlier export");
}

void print_text(const ExportFlags& values, const Exported& made) {
  std::cout << "wrote " << values.output.string() << ": " << human_bytes(made.bytes) << ", " << made.tensors
            << " tensors, " << made.type << "\n";
  if (made.calibration_tokens)
    std::cout << "rounded by " << *made.calibration_tokens << " tokens of " << values.calibration << "\n";
  for (const std::string& name : made.left_out) std::cout << "left out, of another head: " << name << "\n";
  if (!made.not_carried.empty()) std::cout << "not exported: " << joined(made.not_carried) << "\n";
  if (made.equal_tensors) {
    std::cout << "verified " << *made.equal_tensors << " tensors: equal in every bit\n";
    if (!made.left_out.empty())
      std::cout << "not verified: " << made.left_out.size() << " tensors of the source that are left out\n";
  }
  if (!made.report) return;
  for (const VerifyReport::Comparison& entry : made.report->logits)
    std::cout << "verified outputs of [" << entry.batch << ", " << entry.length << "]"
              << (entry.padded ? " padded" : "") << ": relative error " << format_text("%.1e", entry.error)
              << "\n";
  if (made.report->greedy_tokens == 0) return;
  std::cout << "verified generate: " << made.report->greedy_tokens - made.report->greedy_different << " of "
            << made.report->greedy_tokens << " greedy tokens equal\n";
}

void print_json(const ExportFlags& values, const Exported& made) {
  nlohmann::ordered_json line{
      {"output", values.output.string()}, {"format", values.format}, {"bytes", made.bytes},
      {"tensors", made.tensors},          {"type", made.type},       {"left_out", made.left_out},
      {"not_carried", made.not_carried}};
  if (made.calibration_tokens) line["calibration_tokens"] = *made.calibration_tokens;
  if (made.equal_tensors) line["verified"]["equal_tensors"] = *made.equal_tensors;
  if (made.report) {
    line["verified"] = {{"outputs", nlohmann::ordered_json::array()},
                        {"greedy_tokens", made.report->greedy_tokens},
                        {"greedy_different", made.report->greedy_different}};
    for (const VerifyReport::Comparison& entry : made.report->logits)
      line["verified"]["outputs"].push_back({{"batch", entry.batch},
                                             {"length", entry.length},
                                             {"padded", entry.padded},
                                             {"relative_error", entry.error}});
  }
  std::cout << json_text(line) << "\n";
}

// A GGUF file has no others beside it.
std::vector<std::string> left_out_of(const CheckpointConfig& source, SingleFile format) {
  return fs::is_directory(source.directory) ? ModelFiles(source).left_out(format)
                                            : std::vector<std::string>();
}

Exported single_file(const ExportFlags& values, std::size_t tensors, const std::string& type,
                     const std::vector<std::string>& not_carried) {
  return {.bytes = static_cast<std::int64_t>(fs::file_size(values.output)),
          .tensors = static_cast<std::int64_t>(tensors),
          .type = type,
          .not_carried = not_carried};
}

// What a program has of a model.
Exported exported(const ExportFlags& values, const CheckpointConfig& source, const Model& model) {
  return single_file(values, model.parameters().size(), values.compute.dtype,
                     left_out_of(source, SingleFile::kTorchScript));
}

Exported export_script(const ExportFlags& values) {
  std::cerr << "note: PyTorch deprecates TorchScript in favor of torch.export; --format pt2 writes a file "
               "for that\n";
  const at::ScalarType dtype = dtype_of(values.compute);
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  const GenerationDefaults defaults = defaults_of(read_generation_config(values.model, checkpoint.json));
  const LoadedModel loaded = load_model(checkpoint, {.dtype = dtype, .device = device_of(values.compute)});
  export_torchscript(*loaded.model, *loaded.family, loaded.head, values.output,
                     {.eos_ids = defaults.eos_token_ids, .pad_id = defaults.pad_token_id});
  Exported made = exported(values, checkpoint, *loaded.model);
  if (values.verify) made.report = verify_torchscript(values.output, *loaded.model);
  return made;
}

constexpr const char* kOneText = "batches of several texts, which need a pad_token_id in config.json";

// What reads such a file knows it by its name.
void note_ending(const ExportFlags& values, const char* ending, const char* reader) {
  if (values.output.extension() != ending)
    std::cerr << "note: " << reader << " reads the file only if its name ends in " << ending << "\n";
}

Exported export_program(const ExportFlags& values) {
  const at::ScalarType dtype = dtype_of(values.compute);
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  const LoadedModel loaded = load_model(checkpoint, {.dtype = dtype, .device = device_of(values.compute)});
  if (values.decoding && !loaded.model->parts().generates())
    throw UsageError("--decoding: a model with this head generates no text");
  const graph::Graph graph = export_pt2(*loaded.model, values.output, values.decoding);
  note_ending(values, ".pt2", "torch.export.load");
  Exported made = exported(values, checkpoint, *loaded.model);
  if (loaded.model->config().type_vocab_size > 1) made.not_carried.emplace_back("token types other than 0");
  if (takes_one_row(*loaded.model)) made.not_carried.emplace_back(kOneText);
  if (values.verify) made.report = verify_pt2(graph, *loaded.model);
  return made;
}

// Of several files, if it is an encoder-decoder's.
Exported export_onnx_directory(const ExportFlags& values) {
  const at::ScalarType dtype = dtype_of(values.compute);
  if (dtype == at::kBFloat16)
    throw UsageError(
        "--format onnx needs --dtype float32 or float16: ONNX's runtimes lack operators of bfloat16");
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  check_export_target(values.model, values.output);
  const LoadedModel loaded = load_model(checkpoint, {.dtype = dtype});
  AtomicDirectory directory(values.output);
  export_onnx(*loaded.model, directory.path());
  const ModelFiles files(checkpoint);
  Exported made{.tensors = static_cast<std::int64_t>(loaded.model->parameters().size()),
                .type = values.compute.dtype,
                .not_carried = files.unknown()};
  if (takes_one_row(*loaded.model)) made.not_carried.emplace_back(kOneText);
  for (const auto& entry : fs::directory_iterator(directory.path()))
    made.bytes += static_cast<std::int64_t>(entry.file_size());
  save_config(*loaded.model, *loaded.family, loaded.head, directory.path(), {.dtype = dtype});
  files.write(directory.path());
  directory.commit();
  return made;
}

Exported export_directory(const ExportFlags& values) {
  std::optional<at::ScalarType> dtype;
  if (values.dtype_given) dtype = dtype_of(values.compute);
  Exported made = export_huggingface(values.model, values.output, dtype);
  if (values.verify) made.equal_tensors = verify_huggingface(values.model, values.output);
  return made;
}

Exported export_page(const ExportFlags& values) {
  const std::size_t tensors = export_html(values.model, values.output, values.weights).tensors;
  return single_file(values, tensors, values.weights,
                     left_out_of(read_checkpoint_config(values.model), SingleFile::kHtml));
}

// A page for each model, and their front page.
Exported export_gallery(const ExportFlags& values) {
  const fs::path front = values.output / "index.html";
  std::set<fs::path> taken{front};
  std::vector<ExportFlags> pages(values.gallery.size(), values);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    pages[i].model = values.gallery[i];
    std::string name = model_name(pages[i].model);
    std::ranges::replace(name, '/', '-');
    pages[i].output = values.output / (name + ".html");
    if (!taken.insert(pages[i].output).second)
      throw UsageError("--gallery ", values.gallery[i], ": another page is called ", pages[i].output);
    check_export_file(pages[i]);
  }
  if (fs::exists(front) && !is_gallery_page(read_model_file(front)))
    throw Error("--output: ", front,
                " exists and is no front page as it was exported; expected another directory");
  make_directories(values.output);
  Exported made{.type = values.weights};
  std::vector<std::string> cards;
  for (const ExportFlags& page : pages) {
    const HtmlPage written = export_html(page.model, page.output, page.weights);
    made.bytes += static_cast<std::int64_t>(fs::file_size(page.output));
    made.tensors += static_cast<std::int64_t>(written.tensors);
    for (const std::string& left : left_out_of(read_checkpoint_config(page.model), SingleFile::kHtml))
      if (std::ranges::count(made.not_carried, left) == 0) made.not_carried.push_back(left);
    cards.push_back(written.card);
  }
  write_file(front, gallery_page(cards));
  return made;
}

// End tokens beside the tokenizer's, as the two further ones that GGUF has: ends of a turn and of a message.
GgufMetadata further_ends(const Tokenizer& tokenizer, const CheckpointConfig& checkpoint) {
  GgufMetadata metadata;
  const GenerationConfig config = read_generation_config(checkpoint.directory, checkpoint.json);
  TokenIds ends = defaults_of(config).eos_token_ids;
  std::erase(ends, tokenizer.eos_id().value_or(-1));
  const char* const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  if (ends.size() > std::size(keys))
    throw Error(config.path, ": 'eos_token_id' has ", ends.size(),
                " tokens beside the tokenizer's; GGUF has place for ", std::size(keys));
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < 0 || ends[i] >= checkpoint.config.vocab_size)
      throw Error(config.path, ": 'eos_token_id' has ", ends[i], ", but the model has ",
                  checkpoint.config.vocab_size, " tokens");
    metadata.emplace_back(keys[i], static_cast<std::uint32_t>(ends[i]));
  }
  return metadata;
}

std::string gguf_type_of(const ExportFlags& values) {
  std::string type = values.weights;
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
  return type;
}

Exported export_gguf_lora(const ExportFlags& values) {
  const fs::path& base = values.model;
  save_gguf_adapter(PeftAdapter(values.model.adapter), read_checkpoint_config(base), values.output,
                    gguf_type_of(values));
  return single_file(values, GgufFile(values.output).tensors().size(), values.weights,
                     files_beside_adapter(values.model.adapter));
}

Exported export_gguf(const ExportFlags& values) {
  const CheckpointConfig checkpoint = read_checkpoint_config(values.model);
  if (!has_tokenizer(values.model))
    throw Error("--model: ", values.model, " holds no tokenizer, which GGUF needs");
  const auto tokenizer = load_tokenizer(values.model, checkpoint.json.get());
  auto [metadata, lost] = gguf_tokenizer_of(*tokenizer, *checkpoint.json, checkpoint.config.vocab_size);
  for (auto& entry : ChatFormat::read(values.model, values.model.adapter).gguf_metadata())
    metadata.push_back(std::move(entry));
  for (auto& entry : further_ends(*tokenizer, checkpoint)) metadata.push_back(std::move(entry));
  const LoadedModel loaded = load_model(checkpoint);
  save_gguf(*loaded.model, *loaded.family, loaded.head, values.output, gguf_type_of(values), metadata);
  note_ending(values, ".gguf", "transformers");
  const auto files = left_out_of(checkpoint, SingleFile::kGguf);
  lost.insert(lost.end(), files.begin(), files.end());
  return single_file(values, GgufFile(values.output).tensors().size(), values.weights, lost);
}

}  // namespace

int run_export(const Arguments& arguments) {
  ExportFlags values;
  Flags flags(arguments.command, "Converts a model for use in other programs.");
  flags.group("Export");
  add_model_flag(flags, values.model);
  flags.choice(
      "format", values.format,
      {"torchscript", "pt2", "onnx", "huggingface", "gguf", "gguf-lora", "packed", "html"},
      "torchscript: one file that runs without tzoo; pt2: the forward pass as an ExportedProgram of PyTorch, "
      "for torch.export.load and its compilers; onnx: a directory for ONNX Runtime and Optimum, whose "
      "decoders have their caches as inputs and outputs; huggingface: a directory for transformers; gguf: "
      "one file for llama.cpp; gguf-lora: the --adapter for llama.cpp's --lora, not merged; packed: a "
      "directory whose weights tzoo maps as its kernels read them, so "
      "that inference starts at once; html: one page with the model in it, which runs in a browser from a "
      "file, offline, and shows its inside as tzoo serve does");
  flags.add("output", values.output,
            "file or directory to write; replaces an earlier export or another checkpoint there",
            {.placeholder = "PATH", .required = true});
  flags.choice(
      "weights", values.weights,
      {"f32", "f16", "bf16", "q8_0", "q4_0", "float32", "bfloat16", "int8", "int4"},
      "type of matrices; with --format gguf-lora (default f32) and gguf: f32, f16 (gguf's default), bf16, "
      "q8_0 or q4_0, and those whose rows "
      "the blocks of 32 do not divide are f16; with --format packed: float32, bfloat16, int8 or int4; with "
      "--format html: float32 or int8 (default)");
  flags.add(
      "gallery", values.gallery,
      "html, in place of --model: directory of a model; give it again for each. --output is a directory, "
      "which gets a page of each model by its name, and their front page index.html",
      {.placeholder = "DIR", .meaning = [&values](const std::string& given) {
         const std::string model = find_model(given);
         if (values.model.empty()) values.model = model;
         return model;
       }});
  flags.add("calibration", values.calibration,
            "int4: a text like those that the model will read, by which the weights are rounded so that its "
            "outputs change least (GPTQ); takes minutes",
            {.placeholder = "PATH|NAME"});
  flags.add("decoding", values.decoding,
            "pt2: also the steps of generation, whose caches of keys and values are inputs and outputs");
  flags.add("verify", values.verify,
            "torchscript, pt2, huggingface: load the result and compare its outputs with the model's");
  flags.add("json", values.json, "print one JSON object");
  flags.add_compute(values.compute);
  flags.example("tzoo export --model runs/kjv-char/final --output kjv.pt --verify");
  if (!flags.parse(arguments)) return 0;
  values.dtype_given = flags.given("dtype");
  const bool gallery = !values.gallery.empty();
  if (gallery && (flags.given("model") || flags.given("adapter")))
    throw UsageError("--gallery names the models; leave out --model and --adapter");
  check_together(values);
  apply_threads(values.compute);
  if (!gallery) check_export_file(values);
  const Exported made = values.format == "torchscript" ? export_script(values)
                        : values.format == "pt2"       ? export_program(values)
                        : values.format == "onnx"      ? export_onnx_directory(values)
                        : values.format == "gguf"      ? export_gguf(values)
                        : values.format == "gguf-lora" ? export_gguf_lora(values)
                        : values.format == "packed"
                            ? export_packed(values.model, values.output, values.weights, values.calibration)
                        : gallery                 ? export_gallery(values)
                        : values.format == "html" ? export_page(values)
                                                  : export_directory(values);
  values.json ? print_json(values, made) : print_text(values, made);
  if (!made.report || made.report->good()) return 0;
  throw Error(values.output, " does not compute what the model computes: relative error ",
              format_text("%.1e", made.report->largest_error()), " (expected at most ",
              format_text("%.1e", made.report->tolerance), "), ", made.report->greedy_different, " of ",
              made.report->greedy_tokens, " greedy tokens differ");
}

}  // namespace zoo
