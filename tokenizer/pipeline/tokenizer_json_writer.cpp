#include <utility>

#include <nlohmann/json.hpp>

#include "data/base/json_file.h"
#include "tokenizer/files/tokenizer_json.h"

namespace zoo {
namespace {

using nlohmann::json;

void write(const std::filesystem::path& directory, std::span<const std::string> pieces, json pre_tokenizer,
           json decoder) {
  json vocabulary = json::object();
  for (std::size_t id = 0; id < pieces.size(); ++id) vocabulary[pieces[id]] = id;
  const json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", std::move(vocabulary)},
                      {"merges", json::array()}};
  write_json(directory / "tokenizer.json", {{"version", "1.0"},
                                            {"truncation", nullptr},
                                            {"padding", nullptr},
                                            {"added_tokens", json::array()},
                                            {"normalizer", nullptr},
                                            {"pre_tokenizer", std::move(pre_tokenizer)},
                                            {"post_processor", nullptr},
                                            {"decoder", std::move(decoder)},
                                            {"model", model}});
  write_json(directory / "tokenizer_config.json",
             {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}});
}

}  // namespace

void write_char_tokenizer_json(const std::filesystem::path& directory, std::span<const std::string> pieces) {
  write(directory, pieces, nullptr, {{"type", "Fuse"}});
}

void write_byte_tokenizer_json(const std::filesystem::path& directory, std::span<const std::string> pieces) {
  // The decoder looks at none of its settings; these are what the library writes for it.
  const auto byte_level = [](bool setting) {
    return json{
        {"type", "ByteLevel"}, {"add_prefix_space", setting}, {"trim_offsets", true}, {"use_regex", setting}};
  };
  write(directory, pieces, byte_level(false), byte_level(true));
}

}  // namespace zoo
