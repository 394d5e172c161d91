#include "tokenizer/pipeline/bpe_model.h"

#include <thread>

#include "tests/tokenizer/bpe_support.h"
#include "tokenizer/pipeline/word_cache.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/split_patterns.h"

using namespace zoo;
using nlohmann::json;
using test::bpe_model;
using test::Ids;
using test::ids_of;
using test::message_of;

namespace {

BpeOptions options_of(const json& settings) {
  BpeOptions options;
  if (settings.contains("unk_token")) options.unk_token = settings["unk_token"].get<std::string>();
  options.fuse_unk = settings.value("fuse_unk", false);
  options.byte_fallback = settings.value("byte_fallback", false);
  options.ignore_merges = settings.value("ignore_merges", false);
  options.continuing_subword_prefix = settings.value("continuing_subword_prefix", "");
  options.end_of_word_suffix = settings.value("end_of_word_suffix", "");
  return options;
}

// a 0, b 1, … and the merges a+b = 10, ab+a = 11, b+a = 12, in this order.
BpeMerges ab_merges() {
  BpeMerges merges;
  merges.insert(0, 1, {0, 10});
  merges.insert(10, 0, {1, 11});
  merges.insert(1, 0, {2, 12});
  return merges;
}

Ids merged(const BpeMerges& merges, const Ids& symbols) {
  std::vector<BpeSymbol> list;
  for (const TokenId id : symbols) list.push_back({id, 1});
  merges.apply(list);
  Ids ids;
  for (const BpeSymbol& symbol : list) ids.push_back(symbol.id);
  return ids;
}

}  // namespace

TEST_CASE("The lowest rank is merged first, of equal ones the leftmost") {
  const BpeMerges merges = ab_merges();
  CHECK(merged(merges, {0, 1, 0}) == Ids{11});         // ab a, not a ba
  CHECK(merged(merges, {1, 0, 1, 0}) == Ids{1, 11});   // b (ab a)
  CHECK(merged(merges, {1, 0, 0, 1}) == Ids{12, 10});  // ba ab
  CHECK(merged(merges, {0, 1, 0, 1}) == Ids{10, 10});  // ab ab: a+b comes before ab+a
  CHECK(merged(merges, {0, 0}) == Ids{0, 0});
  BpeMerges twice;
  twice.insert(0, 0, {0, 5});
  CHECK(merged(twice, {0, 0, 0}) == Ids{5, 0});  // from the left
  CHECK(merged(merges, {1}) == Ids{1});
  CHECK(merged(merges, {}).empty());
}

TEST_CASE("A merge that a later one has made possible may have the lowest rank of all") {
  BpeMerges merges;
  merges.insert(2, 3, {5, 20});   // cd
  merges.insert(20, 0, {1, 21});  // cd a
  merges.insert(0, 1, {3, 10});   // ab
  merges.insert(3, 3, {9, 22});
  CHECK(merged(merges, {2, 3, 0, 1}) == Ids{20, 10});
  CHECK(merged(merges, {2, 3, 0, 0, 1}) == Ids{21, 10});
  CHECK(merged(merges, {2, 3, 0, 3, 3}) == Ids{21, 22});
}

TEST_CASE("Long words are merged as short ones are") {
  // Longer than the limit for scanning; the parts do not interact, as "d" joins nothing.
  const BpeMerges merges = ab_merges();
  const Ids part = {0, 1, 0, 1, 1, 0, 0, 1, 0, 3};
  Ids expected, word;
  for (int i = 0; i < 50; ++i) {
    const Ids once = merged(merges, part);
    expected.insert(expected.end(), once.begin(), once.end());
    word.insert(word.end(), part.begin(), part.end());
    CHECK(merged(merges, word) == expected);
  }
  // A run of one pair, merged from the left.
  BpeMerges doubling;
  for (int i = 0; i < 10; ++i) doubling.insert(i, i, {static_cast<std::uint32_t>(i), i + 1});
  CHECK(merged(doubling, Ids(1001, 0)) == Ids{9, 8, 7, 6, 5, 3, 0});  // 512 + 256 + 128 + 64 + 32 + 8 + 1
}

TEST_CASE("The work of merging grows with the length of a word, not with its square") {
  const BpeMerges merges = ab_merges();
  const auto looked_at = [&](std::size_t size) {
    std::vector<BpeSymbol> symbols;
    for (std::size_t i = 0; i < size; ++i) symbols.push_back({static_cast<TokenId>(i % 2), 1});
    const std::size_t count = merges.apply(symbols);
    CHECK(symbols.size() == size / 2);
    return count;
  };
  CHECK(looked_at(1000) < 5 * 1000);
  CHECK(looked_at(10'000) < 5 * 10'000);
  CHECK(looked_at(1'000'000) < 5 * 1'000'000);
}

TEST_CASE("Every option gives the ids and ends of the tokenizers package") {
  const json models = test::golden_bpe("models.json");
  REQUIRE(models.size() == 8);
  for (const json& example : models) {
    const BpeModel model = bpe_model(example, options_of(example.at("settings")));
    for (const json& expected : example.at("words")) {
      const auto word = expected.at("word").get<std::string>();
      INFO(example.at("name") << ": " << word);
      CHECK(ids_of(model, word) == expected.at("ids").get<Ids>());
      CHECK(ids_of(model, word) == expected.at("ids").get<Ids>());  // from the cache
      std::vector<BpeSymbol> symbols;
      model.encode(word, symbols);
      std::vector<std::uint32_t> ends;
      std::uint32_t end = 0;
      for (const BpeSymbol& symbol : symbols) ends.push_back(end += symbol.length);
      CHECK(ends == expected.at("ends").get<std::vector<std::uint32_t>>());
    }
  }
}

TEST_CASE("Byte-level ids of difficult texts are those of the tokenizers package") {
  const auto name = GENERATE(as<std::string>{}, "gpt2", "cl100k");
  const SplitPattern pattern = *split_pattern_named(name);
  const BpeModel model = bpe_model(test::golden_bpe("trained-" + name + ".json"), {.byte_level = true});
  const auto lines = test::golden_bpe("lines.json").get<std::vector<std::string>>();
  const json expected = test::golden_bpe("encodings.json").at(name);
  REQUIRE(expected.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    INFO(name << ", text " << i << ": " << lines[i]);
    Ids ids, with_ranges;
    std::vector<ByteRange> ranges;
    split_words(pattern, lines[i], [&](std::string_view word) {
      model.encode(word, ids, nullptr);
      model.encode(word, with_ranges, &ranges);
    });
    CHECK(ids == expected[i].get<Ids>());
    CHECK(with_ranges == ids);
    std::size_t bytes = 0;
    for (const ByteRange& range : ranges) bytes += range.end - range.begin;
    CHECK(bytes == lines[i].size());
  }
}

TEST_CASE("Threads share a model, and a thread uses several models") {
  const json trained = test::golden_bpe("trained-gpt2.json");
  const auto lines = test::golden_bpe("lines.json").get<std::vector<std::string>>();
  std::vector<BpeModel> models;
  for (int i = 0; i < 6; ++i) models.push_back(bpe_model(trained, {.byte_level = true}));
  // Only the last model has other ids, which shows whose cache is used.
  json shifted = trained;
  for (auto& [token, id] : shifted["vocab"].items()) id = id.get<int>() + 1000;
  models.push_back(bpe_model(shifted, {.byte_level = true}));

  std::vector<int> faults(4, 0);
  const auto work = [&](int& count) {
    for (const std::string& line : lines) {
      const Ids expected = ids_of(models[0], line);
      for (std::size_t m = 1; m < models.size(); ++m) {
        Ids ids = ids_of(models[m], line);
        if (m == 6) {
          for (TokenId& id : ids) id -= 1000;
        }
        count += ids != expected;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int& count : faults) threads.emplace_back([&work, &count] { work(count); });
  for (std::thread& thread : threads) thread.join();
  CHECK(faults == std::vector<int>(4, 0));
}

TEST_CASE("A missing token that the model needs is named") {
  const std::vector<VocabularyEntry> vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}};
  const auto fault = [&](MergePairs merges, BpeOptions options) {
    return message_of([&] { BpeModel(vocabulary, merges, options); });
  };
  CHECK(fault({{"a", "b"}, {"a", "x"}}, {}) == "merge 1 needs the token 'x', which is not in the vocabulary");
  CHECK(fault({{"x", "b"}}, {}) == "merge 0 needs the token 'x', which is not in the vocabulary");
  CHECK(fault({{"b", "a"}}, {}) == "merge 0 needs the token 'ba', which is not in the vocabulary");
  CHECK(fault({}, {.unk_token = "[UNK]"}) ==
        "unk_token needs the token '[UNK]', which is not in the vocabulary");
  CHECK(fault({{"", ""}}, {}) == "merge 0 needs the token '', which is not in the vocabulary");
}

TEST_CASE("A token is looked up as the vocabulary writes it") {
  const std::vector<VocabularyEntry> vocabulary = {{"\u0120a", 7}, {"a", 3}};
  const BpeModel model(vocabulary, {}, {.byte_level = true});
  CHECK(model.token_id("\u0120a") == 7);
  CHECK_FALSE(model.token_id(" a").has_value());
}

TEST_CASE("The alphabet for bytes is read back, and nothing else is") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  CHECK(from_byte_level(to_byte_level(bytes)) == bytes);
  CHECK(to_byte_level(" the\n") == "\u0120the\u010A");
  CHECK_FALSE(from_byte_level("a b").has_value());
  CHECK_FALSE(from_byte_level("\u0144").has_value());
  CHECK_FALSE(byte_level_byte(0xAD).has_value());
}

TEST_CASE("The word cache tells words apart and starts over when it is full") {
  WordCache cache;
  Ids ids;
  const auto known = [&](std::string_view word) {
    ids.clear();
    return cache.append(word, ids);
  };
  // Words of every length, and words that differ in one byte.
  std::vector<std::string> words;
  for (std::size_t size = 1; size <= WordCache::kLongest; ++size) {
    words.emplace_back(size, 'a');
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      words.emplace_back(size, 'a');
      words.back()[place] = 'b';
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  for (std::size_t i = 0; i < words.size(); ++i) {
    CHECK_FALSE(known(words[i]));
    const auto id = static_cast<TokenId>(i);
    cache.insert(words[i], Ids{id, id, id}.data(), i % 4);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    CHECK(known(words[i]));
    CHECK(ids == Ids(i % 4, static_cast<TokenId>(i)));
  }
  cache.insert(std::string(WordCache::kLongest + 1, 'a'), ids.data(), 0);
  CHECK_FALSE(known(std::string(WordCache::kLongest + 1, 'a')));
  CHECK(known(""));
  CHECK(ids.empty());

  for (TokenId i = 0; i < 300'000; ++i) {
    const std::string word = "word " + std::to_string(i);
    CHECK_FALSE(known(word));
    cache.insert(word, &i, 1);
    REQUIRE(known(word));
    REQUIRE(ids == Ids{i});
  }
  CHECK_FALSE(known("word 0"));
}
