#include "tokenizer/files/tokenizer_class.h"

#include <algorithm>
#include <sstream>

#include "data/base/error.h"
#include "tokenizer/files/file_readers.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

using Piece = EncodingTemplate::Piece;

// The tokens around one text, or around two texts without a separator.
EncodingTemplate around(const std::vector<Piece>& before, const std::vector<Piece>& after) {
  EncodingTemplate result;
  result.single = before;
  result.single.push_back({Piece::Kind::first_text, 0, {}});
  result.pair = result.single;
  result.pair.push_back({Piece::Kind::second_text, 0, {}});
  for (std::vector<Piece>* pieces : {&result.single, &result.pair})
    pieces->insert(pieces->end(), after.begin(), after.end());
  return result;
}

// Languages of NLLB (NLLB Team, 2022), in the order of transformers' class; without a script: Latin.
constexpr const char* kNllbLanguages =
    "ace_Arab ace acm_Arab acq_Arab aeb_Arab afr ajp_Arab aka amh_Ethi apc_Arab arb_Arab ars_Arab "
    "ary_Arab arz_Arab asm_Beng ast awa_Deva ayr azb_Arab azj bak_Cyrl bam ban bel_Cyrl bem ben_Beng "
    "bho_Deva bjn_Arab bjn bod_Tibt bos bug bul_Cyrl cat ceb ces cjk ckb_Arab crh cym dan deu dik dyu "
    "dzo_Tibt ell_Grek eng epo est eus ewe fao pes_Arab fij fin fon fra fur fuv gla gle glg grn guj_Gujr "
    "hat hau heb_Hebr hin_Deva hne_Deva hrv hun hye_Armn ibo ilo ind isl ita jav jpn_Jpan kab kac kam "
    "kan_Knda kas_Arab kas_Deva kat_Geor knc_Arab knc kaz_Cyrl kbp kea khm_Khmr kik kin kir_Cyrl kmb kon "
    "kor_Hang kmr lao_Laoo lvs lij lim lin lit lmo ltg ltz lua lug luo lus mag_Deva mai_Deva mal_Mlym "
    "mar_Deva min mkd_Cyrl plt mlt mni_Beng khk_Cyrl mos mri zsm mya_Mymr nld nno nob npi_Deva nso nus "
    "nya oci gaz ory_Orya pag pan_Guru pap pol por prs_Arab pbt_Arab quy ron run rus_Cyrl sag san_Deva "
    "sat_Beng scn shn_Mymr sin_Sinh slk slv smo sna snd_Arab som sot spa als srd srp_Cyrl ssw sun swe "
    "swh szl tam_Taml tat_Cyrl tel_Telu tgk_Cyrl tgl tha_Thai tir_Ethi taq taq_Tfng tpi tsn tso tuk tum "
    "tur twi tzm_Tfng uig_Arab ukr_Cyrl umb urd_Arab uzn vec vie war wol xho ydd_Hebr yor yue_Hant "
    "zho_Hans zho_Hant zul";

// In classes with language codes, a mask includes the spaces before it, unless a file has its rules.
void set_mask_rules(TokenizerSettings& settings) {
  AddedToken& mask = settings.roles.at(SpecialToken::mask);
  const bool is_listed =
      std::any_of(settings.added_tokens_decoder.begin(), settings.added_tokens_decoder.end(),
                  [&](const auto& entry) { return entry.second.content == mask.content; });
  if (!settings.mask_has_rules && !is_listed) mask.lstrip = mask.normalized = true;
}

// The default tokens of a class, in the order of SpecialToken.
struct ClassDefaults {
  std::string_view tokenizer_class;
  const char* tokens[7];
};

// clang-format off
constexpr const char* kNone = nullptr;
constexpr ClassDefaults kDefaults[] = {
    {"BertTokenizer",       {kNone,           kNone,           "[UNK]",         "[SEP]", "[PAD]",         "[CLS]", "[MASK]"}},
    {"GPT2Tokenizer",       {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", kNone,   kNone,           kNone,   kNone}},
    {"RobertaTokenizer",    {"<s>",           "</s>",          "<unk>",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"T5Tokenizer",         {kNone,           "</s>",          "<unk>",         kNone,   "<pad>",         kNone,   kNone}},
    {"Qwen2Tokenizer",      {kNone,           "<|endoftext|>", "<|endoftext|>", kNone,   "<|endoftext|>", kNone,   kNone}},
    {"GPTNeoXTokenizer",    {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", kNone,   "<|padding|>",   kNone,   kNone}},
    {"GemmaTokenizer",      {"<bos>",         "<eos>",         "<unk>",         kNone,   "<pad>",         kNone,   "<mask>"}},
    {"XLMRobertaTokenizer", {"<s>",           "</s>",          "<unk>",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"LlamaTokenizer",      {"<s>",           "</s>",          "<unk>",         kNone,   kNone,           kNone,   kNone}},
    {"AlbertTokenizer",     {"[CLS]",         "[SEP]",         "<unk>",         "[SEP]", "<pad>",         "[CLS]", "[MASK]"}},
    {"MBartTokenizer",      {"<s>",           "</s>",          "<unk>",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"MBart50Tokenizer",    {kNone,           "</s>",          "<unk>",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"NllbTokenizer",       {"<s>",           "</s>",          "<unk>",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"MPNetTokenizer",      {"<s>",           "</s>",          "[UNK]",         "</s>",  "<pad>",         "<s>",   "<mask>"}},
    {"PegasusTokenizer",    {kNone,           "</s>",          "<unk>",         kNone,   "<pad>",         kNone,   "<mask_2>"}},
    {"DebertaV2Tokenizer",  {"[CLS]",         "[SEP]",         "[UNK]",         "[SEP]", "[PAD]",         "[CLS]", "[MASK]"}},
};
// clang-format on

constexpr std::string_view kBackend = "TokenizersBackend";  // the class that keeps a file's pipeline

struct Registered {
  std::string_view tokenizer_class;
  std::string_view model_types;  // between spaces
};

// TOKENIZER_MAPPING_NAMES of transformers 5.23. Its other types have a class that the zoo lacks, or none,
// which is equivalent here.
constexpr Registered kRegistered[] = {
    {kBackend,
     "EvollaModel arctic aria beam bigbird_pegasus camembertv2-base canary chatlm cohere_asr ernie4_5 "
     "ernie4_5_moe flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr "
     "got_ocr2 gpt_bigcode gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared "
     "h2ovl_chat hyperclovax hyperclovax_vlm internlm2 internlm3 iquestcoder jamba kimi_k25 kimi_linear "
     "kosmos-2 llava llava_next mimo_v2_flash minicpm3 minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 "
     "minimax_m2 ministral ministral3 mistral mistral3 mistral_large4 mixtral modernbert "
     "modernbert-decoder molmo molmo2 nemo_speechlm nemotron nvfp4 nystromformer olmo2 olmo3 olmo_hybrid "
     "opencua openvla paddleocr_vl pegasus_x persimmon phi3 phi3_v phimoe pix2struct pixtral pocket_tts "
     "smolvlm stablelm step3_vl umt5 vipllava voxtral voxtral_realtime xlm-roberta-xl"},
    {"BertTokenizer",
     "align bark bert blip bros chinese_clip convbert distilbert electra ernie flava git grounding-dino "
     "layoutlm megatron-bert mm-grounding-dino nezha nomic_bert qdqbert realm retribert squeezebert tvp "
     "vilt visual_bert"},
    {"GPT2Tokenizer",
     "blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip instructblipvideo "
     "jais2 opt phi starcoder2"},
    {"RobertaTokenizer",
     "bart bridgetower clap data2vec-text ibert lilt longformer mega mra roberta roberta-prelayernorm"},
    {"T5Tokenizer", "mt5 musicgen musicgen_melody switch_transformers t5"},
    {"LlamaTokenizer", "idefics idefics2"},
    {"MBartTokenizer", "mbart"},
    {"MBart50Tokenizer", "mbart50"},
    {"NllbTokenizer", "nllb nllb-moe"},
    {"Qwen2Tokenizer",
     "audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl lighton_ocr "
     "moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe "
     "qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe vibevoice"},
    {"GemmaTokenizer",
     "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 "
     "t5gemma zaya"},
    {"PegasusTokenizer", "pegasus"},
    {"MPNetTokenizer", "mpnet"},
    {"DebertaV2Tokenizer", "deberta-v2"},
    {"GPTNeoXTokenizer", "falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm"},
    {"AlbertTokenizer", "albert yoso"},
    {"XLMRobertaTokenizer", "gte jina_embeddings_v3 metaclip_2 trocr xlm-roberta xmod"},
    {"MarianTokenizer", "marian"},
    {"M2M100Tokenizer", "m2m_100"},
    {"Qwen3_5Tokenizer", "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp"},
    {"Siglip2Tokenizer", "siglip2"},
};

// Those of MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS whose registered class is not TokenizersBackend.
constexpr std::string_view kDistrusted =
    "hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp siglip2";

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

void TokenizerSettings::use_class(std::string name) {
  tokenizer_class = std::move(name);
  for (const ClassDefaults& known : kDefaults) {
    if (known.tokenizer_class != tokenizer_class) continue;
    for (std::size_t i = 0; i < std::size(known.tokens); ++i) {
      if (known.tokens[i] != kNone)
        roles.try_emplace(static_cast<SpecialToken>(i), special_token(known.tokens[i]));
    }
  }
}

void TokenizerSettings::add_sentinels() {
  const bool has_some =
      std::any_of(additional_special_tokens.begin(), additional_special_tokens.end(),
                  [](const AddedToken& token) { return token.content.starts_with("<extra_id_"); });
  if (names_extra_tokens || has_some) return;
  for (std::int64_t i = 0; i < extra_ids.value_or(100); ++i)
    additional_special_tokens.push_back(special_token("<extra_id_" + std::to_string(i) + ">"));
}

void add_class_tokens(TokenizerSettings& settings) {
  const std::string& name = settings.tokenizer_class;
  // The constructor of a class adds its defaults to a vocabulary that lacks them.
  for (const auto& [role, token] : settings.roles) settings.named.push_back(role);
  if (name == "T5Tokenizer") settings.add_sentinels();
  const bool is_nllb = name == "NllbTokenizer";
  if (!is_nllb && !name.starts_with("MBart")) return;
  set_mask_rules(settings);
  if (settings.names_extra_tokens) return;
  std::vector<AddedToken> languages;
  std::istringstream codes(is_nllb ? kNllbLanguages : "");
  for (std::string code; codes >> code;)
    languages.push_back(special_token(code.size() == 3 ? code + "_Latn" : code));
  for (const std::string_view language : mbart_languages(name == "MBart50Tokenizer"))
    if (!is_nllb) languages.push_back(special_token(std::string(language)));
  auto& extra = settings.additional_special_tokens;
  extra.insert(name == "MBartTokenizer" ? extra.begin() : extra.end(), languages.begin(), languages.end());
}

void reset_special_tokens(const TokenizerSettings& settings, Pipeline& pipeline) {
  TokenRegistry registry(pipeline);
  const auto reset = [&](const AddedToken& token) {
    if (!token.content.empty() && registry.find(token.content)) registry.add(special_token(token.content));
  };
  for (const auto& [role, token] : settings.roles) reset(token);
  for (const AddedToken& token : settings.additional_special_tokens) reset(token);
}

void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline, const fs::path& file) {
  const std::string& name = settings.tokenizer_class;
  const auto id_of = [&, registry = TokenRegistry(pipeline)](const std::string& text) {
    const auto id = registry.find(text);
    if (!id) throw Error(file, ": has no token '", text, "', which ", name, " puts beside every text");
    return *id;
  };
  const auto role = [&](SpecialToken role) { return id_of(settings.roles.at(role).content); };
  const auto around_texts = [&](EncodingTemplate (*make)(TokenId, TokenId), SpecialToken first,
                                SpecialToken last) {
    const TokenId begin = role(first);
    return make(begin, role(last));
  };
  const auto piece = [](TokenId id) { return Piece{Piece::Kind::special, 0, {id}}; };
  const bool is_nllb = name == "NllbTokenizer", is_mbart = name == "MBartTokenizer";
  if (name == "BertTokenizer" || name == "DebertaV2Tokenizer" || name == "AlbertTokenizer") {
    pipeline.encoding_template = around_texts(bert_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "RobertaTokenizer" || name == "MPNetTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "XLMRobertaTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::bos, SpecialToken::eos);
  } else if (name == "T5Tokenizer") {
    const Piece end = piece(role(SpecialToken::eos));
    const Piece first{Piece::Kind::first_text, 0, {}}, second{Piece::Kind::second_text, 0, {}};
    pipeline.encoding_template = {{first, end}, {first, end, second, end}};
  } else if (name == "PegasusTokenizer") {
    pipeline.encoding_template = around({}, {piece(role(SpecialToken::eos))});
  } else if (is_nllb || is_mbart || name == "MBart50Tokenizer") {
    const Piece end = piece(role(SpecialToken::eos));
    const Piece language = piece(id_of(settings.src_lang.value_or(is_nllb ? "eng_Latn" : "en_XX")));
    const bool language_ends = is_mbart || (is_nllb && settings.legacy_behaviour.value_or(false));
    pipeline.encoding_template = language_ends ? around({}, {end, language}) : around({language}, {end});
  } else if (name == "GPTNeoXTokenizer") {
    pipeline.encoding_template = plain_template();
  } else {
    return;  // keeps the file's template and how it trims offsets
  }
  pipeline.offset_trimming.reset();
  if (name == "MPNetTokenizer" || (name == "RobertaTokenizer" && settings.trim_offsets.value_or(true)))
    pipeline.offset_trimming =
        Pipeline::OffsetTrimming{name == "RobertaTokenizer" && settings.add_prefix_space.value_or(false)};
}

std::string canonical_class(std::string name) {
  if (name.ends_with("Fast")) name.erase(name.size() - 4);
  const auto is_any_of = [&](std::string_view names) { return !name.empty() && has_word(names, name); };
  if (is_any_of("DistilBertTokenizer ElectraTokenizer MobileBertTokenizer SqueezeBertTokenizer"))
    return "BertTokenizer";
  if (is_any_of("BartTokenizer LEDTokenizer LongformerTokenizer")) return "RobertaTokenizer";
  return is_any_of("BloomTokenizer PreTrainedTokenizer PythonBackend") ? std::string(kBackend) : name;
}

std::string chosen_class(std::string_view model_type, const std::string& named, bool is_byte_level) {
  const auto* found =
      std::find_if(std::begin(kRegistered), std::end(kRegistered), [&](const Registered& entry) {
        return !model_type.empty() && has_word(entry.model_types, model_type);
      });
  const std::string registered(found == std::end(kRegistered) ? "" : found->tokenizer_class);
  const bool is_named = !named.empty() && registered != kBackend && !has_word(kDistrusted, model_type) &&
                        !(named == "LlamaTokenizer" && is_byte_level);
  const bool is_registered = named.empty() || has_word(kDistrusted, model_type);
  const std::string chosen = is_named ? named : is_registered ? registered : "";
  return chosen == kBackend ? "" : chosen;
}

}  // namespace zoo
