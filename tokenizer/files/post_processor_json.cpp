#include <nlohmann/json.hpp>

#include "tokenizer/files/tokenizer_json.h"

namespace zoo {
namespace {

using nlohmann::json;
using Piece = EncodingTemplate::Piece;
using Kind = Piece::Kind;

std::int32_t type_id(const JsonSection& section) {
  return static_cast<std::int32_t>(section.count("type_id", 0));
}

// special_tokens: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": ["[CLS]"]}}
TokenIds special_ids(const JsonSection& processor, const std::string& name) {
  const JsonSection tokens = processor.section("special_tokens");
  if (tokens.find(name.c_str()) == nullptr)
    processor.fail("special_tokens", "has no ", json(name).dump(), ", which the template uses");
  TokenIds ids;
  for (const json& id : tokens.section(name.c_str()).require("ids", JsonType::array)) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > (1u << 30))
      tokens.fail(name, "has an id that is ", id.is_structured() ? id.type_name() : id.dump());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

Piece read_piece(const JsonSection& processor, const JsonSection& piece) {
  if (piece.find("Sequence") != nullptr) {
    const JsonSection sequence = piece.section("Sequence");
    const std::string id = sequence.text("id");
    if (id != "A" && id != "B") sequence.fail("id", "is ", id, ": expected A or B");
    return {id == "A" ? Kind::first_text : Kind::second_text, type_id(sequence), {}};
  }
  const JsonSection special = piece.section("SpecialToken");
  return {Kind::special, type_id(special), special_ids(processor, special.text("id"))};
}

std::vector<Piece> read_pieces(const JsonSection& processor, const char* key) {
  std::vector<Piece> pieces;
  for (const JsonSection& piece : processor.sections(key)) pieces.push_back(read_piece(processor, piece));
  return pieces;
}

// ["[SEP]", 102]
TokenId named_id(const JsonSection& processor, const char* key) {
  const json& pair = processor.require(key, JsonType::array);
  if (pair.size() != 2 || !pair[1].is_number_unsigned() || pair[1].get<std::uint64_t>() > (1u << 30))
    processor.fail(key, "is not a token with its id");
  return pair[1].get<TokenId>();
}

// `tokenizers` trims what the earlier processors have made of each text: one encoding with its special tokens
// of BertProcessing and RobertaProcessing, but one for each piece of a template.
void set_trimming(const JsonSection& processor, const std::string& joined_by, Pipeline& pipeline) {
  if (!processor.flag("trim_offsets", true)) return;
  if (pipeline.offset_trimming)
    processor.fail("trim_offsets", "is true in two post-processors, which is not supported");
  pipeline.offset_trimming = Pipeline::OffsetTrimming{processor.flag("add_prefix_space", true),
                                                      !joined_by.empty(), joined_by == "RobertaProcessing"};
}

// `joined_by`: the last processor that joined special tokens with a text. True if this one adds tokens.
bool read(const JsonSection& processor, std::string& joined_by, Pipeline& pipeline) {
  const std::string type = processor.text("type");
  if (type == "ByteLevel") {
    set_trimming(processor, joined_by, pipeline);
    return false;
  }
  if (type == "TemplateProcessing") {
    pipeline.encoding_template = {read_pieces(processor, "single"), read_pieces(processor, "pair")};
  } else if (type == "BertProcessing") {
    pipeline.encoding_template = bert_template(named_id(processor, "cls"), named_id(processor, "sep"));
  } else if (type == "RobertaProcessing") {
    set_trimming(processor, joined_by, pipeline);
    pipeline.encoding_template = roberta_template(named_id(processor, "cls"), named_id(processor, "sep"));
  } else {
    fail_unknown_type(processor, "post-processor",
                      "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") joined_by = type;
  return true;
}

}  // namespace

void read_post_processor(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("post_processor") == nullptr) return;
  const JsonSection section = root.section("post_processor");
  std::string joined_by;
  int templates = 0;
  for (const JsonSection& part : all_parts(section, "processors"))
    templates += read(part, joined_by, pipeline) ? 1 : 0;
  if (templates > 1) section.fail("processors", "has more than one that adds tokens, which is not supported");
}

}  // namespace zoo
