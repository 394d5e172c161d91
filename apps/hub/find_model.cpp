#include "apps/hub/find_model.h"

#include <algorithm>
#include <array>

#include "apps/hub/hub_cache.h"
#include "data/base/error.h"
#include "models/checkpoint/peft_adapter.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPickles{".bin", ".pt", ".pth", ".ckpt"};

void refuse_weights(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".safetensors" || file.filename() == "config.json")
    throw Error(file, " is a part of a model; give the directory, ",
                file.has_parent_path() ? file.parent_path() : fs::path("."));
  if (std::ranges::find(kPickles, extension) != kPickles.end())
    throw Error("--model: ", file,
                " is a Python pickle; the zoo reads safetensors, which save_pretrained() of ",
                "transformers writes from it");
}

}  // namespace

std::string find_model(const std::string& given) {
  std::error_code error;
  if (fs::exists(given, error)) {
    if (fs::is_regular_file(given, error)) refuse_weights(given);
    return given;
  }
  if (!HubName::fits(given)) return given;
  const auto found = HubCache(HubName::parse(given)).find();
  if (found) return found->string();
  throw Error("'", given,
              "' is not a directory here, and no model of this name is in Hugging Face's cache; 'tzoo pull ",
              given, "' downloads it from the hub");
}

void add_model_flag(Flags& flags, ModelPath& target, std::string help) {
  fs::path& model = target;
  flags.add("model", model, std::move(help),
            {.placeholder = "DIR", .meaning = find_model, .leads = true, .required = true});
  flags.add("adapter", target.adapter,
            "directory of a PEFT adapter (LoRA, rsLoRA, DoRA) that is merged into the weights",
            {.placeholder = "DIR", .meaning = [&model](const std::string& given) {
               const std::string adapter = find_model(given), base = PeftAdapter::base_of(adapter);
               if (model.empty() && fs::exists(base)) model = base;
               return adapter;
             }});
}

std::string model_name(const fs::path& given) {
  fs::path path = fs::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  // …/models--google--flan-t5-small/snapshots/COMMIT
  const std::string folder = path.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (path.parent_path().filename() != "snapshots" || !folder.starts_with(kPrefix))
    return path.filename().string();
  std::string name = folder.substr(kPrefix.size());
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

}  // namespace zoo
