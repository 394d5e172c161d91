#include "apps/serve/model_names.h"

#include <algorithm>
#include <filesystem>

#include "apps/command/arguments.h"
#include "apps/hub/find_model.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// The names of an absolute path, the last one first.
std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::path& part : fs::weakly_canonical(path))
    if (!part.empty() && part != "/") names.insert(names.begin(), part.string());
  return names;
}

std::string last_folders(const std::vector<std::string>& folders, std::size_t count) {
  std::string name;
  for (std::size_t i = 0; i < std::min(count, folders.size()); ++i)
    name = folders[i] + (name.empty() ? "" : "/") + name;
  return name;
}

// Names folders of one name by as many folders above them as tell them apart.
void tell_apart(const std::vector<GivenModel*>& models) {
  std::vector<std::vector<std::string>> folders;
  std::size_t longest = 0;
  for (const GivenModel* model : models) {
    folders.push_back(folders_of(model->path));
    longest = std::max(longest, folders.back().size());
  }
  for (std::size_t count = 2; count <= longest; ++count) {
    std::vector<std::string> names;
    for (const auto& each : folders) names.push_back(last_folders(each, count));
    for (std::size_t i = 0; i < models.size(); ++i) models[i]->name = names[i];
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) == names.end()) return;
  }
}

}  // namespace

std::vector<GivenModel> name_models(const std::vector<std::string>& given) {
  std::vector<GivenModel> models;
  std::vector<std::size_t> unnamed;
  for (const std::string& each : given) {
    const std::size_t sign = fs::exists(each) ? each.npos : each.find('=');
    const std::string path = find_model(sign == each.npos ? each : each.substr(sign + 1));
    if (sign == each.npos) unnamed.push_back(models.size());
    models.push_back({sign == each.npos ? model_name(path) : each.substr(0, sign), path});
    if (models.back().name.empty()) throw UsageError("--model ", each, ": expected NAME=DIR");
  }
  for (std::size_t i : unnamed) {
    std::vector<GivenModel*> equal;
    for (std::size_t j : unnamed)
      if (models[j].name == models[i].name) equal.push_back(&models[j]);
    if (equal.size() > 1) tell_apart(equal);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (models[i].name == models[j].name)
        throw UsageError("--model: two models are called '", models[i].name,
                         "'; give one of them another name, NAME=DIR");
    }
  }
  return models;
}

}  // namespace zoo
