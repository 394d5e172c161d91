#include <array>

#include "data/base/error.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct Format {
  std::string_view file;
  std::unique_ptr<Tokenizer> (*read)(const fs::path& path, TokenizerSettings settings);
  std::string_view shifted = "";  // the beginning of the classes whose file read_shifted_pieces() reads

  std::unique_ptr<Tokenizer> read_in(const fs::path& directory, const TokenizerSettings& settings) const {
    const bool shifts = !shifted.empty() && settings.tokenizer_class.starts_with(shifted);
    return (shifts ? read_shifted_pieces : read)(directory / file, settings);
  }
};

// In transformers' order of preference.
constexpr Format kFormats[] = {{"tokenizer.json", read_tokenizer_json},
                               {"spiece.model", read_sentencepiece, "PegasusTokenizer"},
                               {"tokenizer.model", read_sentencepiece},
                               {"spm.model", read_shifted_pieces},
                               {"source.spm", read_marian},
                               {"sentencepiece.bpe.model", read_m2m_100, "MBart"},
                               {"vocab.txt", read_vocab_txt},
                               {"vocab.json", read_vocab_json}};

const Format* find_format(const fs::path& directory) {
  for (const Format& format : kFormats) {
    std::error_code ignored;
    if (fs::exists(directory / format.file, ignored)) return &format;
  }
  return nullptr;
}

// PEFT saves a tokenizer beside an adapter whose training added tokens.
const fs::path& with_tokenizer(const ModelPath& model) {
  return !model.adapter.empty() && find_format(model.adapter) != nullptr ? model.adapter : model;
}

}  // namespace

bool has_tokenizer(const ModelPath& model) {
  const fs::path& directory = with_tokenizer(model);
  return find_format(directory) != nullptr || has_gguf_tokenizer(directory);
}

std::unique_ptr<Tokenizer> load_tokenizer(const ModelPath& model, const nlohmann::json* config) {
  const fs::path& directory = with_tokenizer(model);
  std::error_code ignored;
  if (fs::is_regular_file(directory, ignored)) return read_gguf_tokenizer(directory);
  if (!fs::is_directory(directory, ignored)) throw Error(directory, " is not a directory with a tokenizer");
  const Format* format = find_format(directory);
  if (format == nullptr)
    throw Error(directory,
                " has no tokenizer: expected tokenizer.json, spiece.model, tokenizer.model, vocab.txt, "
                "vocab.json with merges.txt, source.spm with vocab.json, spm.model (DeBERTa), or "
                "sentencepiece.bpe.model (M2M-100's with vocab.json)");
  TokenizerSettings settings = TokenizerSettings::read(directory, config);
  // Without a pipeline, the named class of transformers 5 loads its vocabulary, as in transformers 4.
  const bool has_pipeline = format->file == "tokenizer.json";
  if (!has_pipeline && settings.tokenizer_class.empty()) settings.use_class(settings.named_class);
  constexpr std::array kWithSegments{"BertTokenizer",    "DebertaTokenizer", "DebertaV2Tokenizer",
                                     "ElectraTokenizer", "FNetTokenizer",    "MobileBertTokenizer"};
  auto tokenizer = format->read_in(directory, settings);
  TextLimits limits = tokenizer->limits();
  limits.max_length = settings.max_length;
  limits.truncates_left = settings.truncates_left.value_or(limits.truncates_left);
  limits.pads_left = settings.pads_left.value_or(limits.pads_left);
  limits.gives_segments =
      settings.gives_segments.value_or(std::ranges::count(kWithSegments, settings.tokenizer_class) > 0);
  tokenizer->set_limits(limits);
  return tokenizer;
}

}  // namespace zoo
