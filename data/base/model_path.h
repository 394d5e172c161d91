#pragma once

#include <filesystem>
#include <utility>

namespace zoo {

/// The path of a model, a checkpoint directory or a GGUF file, and the directory of the PEFT adapter that is
/// merged into its weights (peft_adapter.h); empty: none.
struct ModelPath : std::filesystem::path {
  using std::filesystem::path::path;
  ModelPath() = default;
  ModelPath(std::filesystem::path model, std::filesystem::path adapter_directory = {})
      : path(std::move(model)), adapter(std::move(adapter_directory)) {}

  std::filesystem::path adapter;
};

}  // namespace zoo
