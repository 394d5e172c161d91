#include "apps/hub/find_model.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "apps/hub/hub_cache.h"
#include "data/base/error.h"

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

}  // namespace zoo
