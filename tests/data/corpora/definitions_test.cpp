#include "data/corpora/definitions.h"

#include <algorithm>

#include "data/examples/record_file.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::Dictionary;
using zoo::label_definitions;
using zoo::parse_definitions;
using zoo::test::message_of;
using zoo::test::ScopedVariable;
using zoo::test::TemporaryDirectory;
using enum zoo::DefinitionSet;

namespace {

std::vector<std::string> numbered(const std::string& word, int count) {
  std::vector<std::string> texts;
  for (int i = 1; i <= count; ++i) texts.push_back(word + " " + std::to_string(i));
  return texts;
}

}  // namespace

TEST_CASE("a definition is what a gloss says before its examples") {
  const std::string text =
      "  1 This software and database is being provided to you  \n"
      "00001740 02 r 01 a_cappella 0 000 | without musical accompaniment; \"they performed a cappella\"  \n"
      "00001837 02 r 03 AD 0 000 | in the Christian era; used before dates; \"in AD 200\"; \"AD 1\"  \n"
      "00002142 03 n 01 rudd 0 000 | rudds  \r\n"
      "00002143 03 n 01 bar 0 000 | the sign | in logic; ; \"a | b\"\n"
      "00002144 03 n 01 quoted 0 000 | called \"big\" by some\n"
      "00002145 03 n 01 example 0 000 | \"nothing but an example\"; said of others  \n"
      "00002146 03 n 01 empty 0 000 |   \n";
  CHECK(parse_definitions(text, "data.adv") ==
        std::vector<std::string>{"without musical accompaniment", "in the Christian era; used before dates",
                                 "rudds", "the sign | in logic", "called \"big\" by some"});
}

TEST_CASE("a synset that is cut off is named with its file and line") {
  CHECK_THAT(message_of([] {
               parse_definitions("  1 licence\n00001740 02 r 01 so 0 000 | thus  \n00001837 02 r 03 A",
                                 "there/data.adv");
             }),
             Contains("there/data.adv, line 3: expected a synset with its gloss"));
  CHECK(parse_definitions("", "data.adv").empty());
}

TEST_CASE("parts of speech are interleaved, and every tenth definition is held out") {
  Dictionary dictionary;
  dictionary[0] = {"noun", numbered("thing", 6)};
  dictionary[1] = {"verb", numbered("do", 3)};
  dictionary[2] = {"adjective", {"being 1", "thing 1"}};  // the second is a duplicate by then
  dictionary[3] = {"adverb", numbered("so", 1)};
  // Share done when half of each definition is taken: nouns 1/12, 3/12 ..., verbs 1/6, 3/6, 5/6, adjectives
  // 1/4, 3/4, the adverb 1/2. On ties the order is noun, verb, adjective, adverb.
  CHECK(label_definitions(dictionary, kTraining) ==
        "text\tlabel\nthing 1\tnoun\ndo 1\tverb\nthing 2\tnoun\nbeing 1\tadjective\nthing 3\tnoun\n"
        "do 2\tverb\nso 1\tadverb\nthing 4\tnoun\nthing 5\tnoun\nthing 6\tnoun\n");
  CHECK(label_definitions(dictionary, kHeldOut) == "text\tlabel\ndo 3\tverb\n");
}

TEST_CASE("WordNet has its definitions, each once and of both sets") {
  const Dictionary dictionary = zoo::read_dictionary();
  const std::size_t counts[] = {82115, 13767, 18156, 3621};  // the synsets of WordNet 3.0
  for (std::size_t part = 0; part < dictionary.size(); ++part)
    CHECK(dictionary[part].definitions.size() == counts[part]);
  const std::string train = label_definitions(dictionary, kTraining),
                    held_out = label_definitions(dictionary, kHeldOut);
  const auto rows = [](const std::string& table, const char* name) {
    return zoo::parse_records(table, name, {{"text", "label"}, {"text_pair"}});
  };
  std::vector<std::string> texts;
  for (const auto& record : rows(train, "train.tsv")) texts.push_back(record.fields[0]);
  CHECK(texts.size() == 105028);
  for (const auto& record : rows(held_out, "held-out.tsv")) texts.push_back(record.fields[0]);
  CHECK(texts.size() == 105028 + 11669);
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
  CHECK_THAT(train, Contains("\nan entity that has physical existence\tnoun\n") &&
                        Contains("\nwithout musical accompaniment\tadverb\n"));
}

TEST_CASE("without WordNet the error says how to install it") {
  const TemporaryDirectory folder;
  const ScopedVariable elsewhere("WNSEARCHDIR", folder.path().string());
  CHECK_THAT(message_of(zoo::read_dictionary),
             Contains("data.noun") && Contains("apt-get install wordnet-base") && Contains("WNSEARCHDIR"));
  std::filesystem::create_directory(folder / "data.noun");
  CHECK_THAT(message_of(zoo::read_dictionary), Contains("data.noun") && Contains("directory"));
}
