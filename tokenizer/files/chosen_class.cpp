#include "tokenizer/files/chosen_class.h"

#include <algorithm>

namespace zoo {
namespace {

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
     "smolvlm "
     "stablelm step3_vl umt5 vipllava voxtral voxtral_realtime xlm-roberta-xl"},
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
