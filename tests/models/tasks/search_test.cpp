#include "models/tasks/search/search.h"

#include <chrono>
#include <fstream>
#include <set>

#include "data/base/atomic_file.h"
#include "data/base/directory_lock.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;
using Catch::Contains;
using test::error_of;

namespace {

namespace fs = std::filesystem;
using Passages = std::vector<std::string>;  // line and text

Passages passages_of(std::string_view text, std::size_t most_bytes = 1000) {
  Passages found;
  each_passage(
      text,
      [&found](std::int64_t line, std::string_view passage) {
        found.push_back(std::to_string(line) + " " + std::string(passage));
        return true;
      },
      most_bytes);
  return found;
}

SearchEmbedders embedders(std::uint64_t seed = 3, const std::string& prompt = "") {
  const auto model = test::random_model("bert", test::small_encoder_config(), Head::kBase, seed);
  const TextEmbedder embedder(model, std::make_shared<CharTokenizer>(CharTokenizer::train("abcdefghijklm")),
                              SentenceConfig{}, {});
  SearchEmbedders both = search_embedders(embedder, {});
  both.documents = embedder.with_prompt(prompt);
  return both;
}

// Files in a folder, and an index of them.
struct Notes {
  void write(const std::string& name, const std::string& text) { write_file(folder / name, text); }

  std::vector<fs::path> files() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.path().extension() == ".txt") found.insert(entry.path());
    return {found.begin(), found.end()};
  }

  fs::path shard(int number) const {
    return folder / "index" / ("vectors-00000" + std::to_string(number) + ".safetensors");
  }
  int shards() const {
    int count = 0;
    while (fs::exists(shard(count))) ++count;
    return count;
  }

  // Another process: returns the number of texts that the model read.
  std::int64_t update(std::int64_t stop_after = 1000, const SearchEmbedders& by = embedders()) {
    std::int64_t count = 0;
    UpdateOptions options{.batch_size = 1, .shard_rows = 2};
    options.run = [&count](const TextPass& pass, const std::vector<Encoding>& texts) {
      count += static_cast<std::int64_t>(texts.size());
      return run_at_once(pass, texts);
    };
    options.progress = [stop_after](std::int64_t done, std::int64_t) { return done < stop_after; };
    index = std::make_unique<SearchIndex>(by, folder / "index");
    remaining = index->update(files(), options);
    return count;
  }

  // Score, name, line and text of each hit, here and by an index in memory that embeds all.
  std::vector<std::string> hits(const std::string& query, const SearchIndex& of) const {
    std::vector<std::string> lines;
    for (const SearchHit& hit : of.search(query, 100))
      lines.push_back(std::to_string(hit.score) + " " + files().at(hit.file).filename().string() + ":" +
                      std::to_string(hit.line) + " " + hit.text);
    return lines;
  }
  void check_all_is_found() const {
    SearchIndex fresh(embedders());
    CHECK(fresh.update(files(), {.batch_size = 1}) == 0);  // other batches may round otherwise
    CHECK(hits("abc", *index) == hits("abc", fresh));
  }

  test::TemporaryDirectory folder;
  std::unique_ptr<SearchIndex> index;
  std::int64_t remaining = 0;
};

}  // namespace

TEST_CASE("Passages are the lines between blank ones") {
  CHECK(passages_of("\n  one\ntwo\n \t\nthree  \n\n\nfour") == Passages{"2 one\ntwo", "5 three", "8 four"});
  CHECK(passages_of("a\r\nb\r\n\r\nc\r\n") == Passages{"1 a\r\nb", "4 c"});
  CHECK(passages_of("a").size() == 1);
  CHECK(passages_of("").empty());
  CHECK(passages_of(" \n\t\n").empty());
  int taken = 0;
  each_passage("a\n\nb\n\nc", [&taken](auto, auto) { return ++taken < 2; });
  CHECK(taken == 2);
}

TEST_CASE("Long paragraphs are cut at a line end, a space or between characters") {
  // 14 bytes are two parts of about 7, 24 three of 8.
  CHECK(passages_of("abcd efgh ijkl", 10) == Passages{"1 abcd", "1 efgh ijkl"});
  CHECK(passages_of("ab cd\nef gh ij", 10) == Passages{"1 ab cd", "2 ef gh ij"});
  CHECK(passages_of("ab\ncdefghijklm", 10) == Passages{"1 ab\ncdef", "2 ghijklm"});
  CHECK(passages_of("abcdefgh ijklmno qrstuvw", 10) == Passages{"1 abcdefgh", "1 ijklmno", "1 qrstuvw"});
  CHECK(passages_of("ééééééé", 10) == Passages{"1 ééé", "1 éééé"});
  CHECK(passages_of("😀😀", 1) == Passages{"1 😀", "1 😀"});
  CHECK(passages_of("abcdefghij", 10).size() == 1);
}

TEST_CASE("A file without text is named") {
  const test::TemporaryDirectory folder;
  const auto read = [&folder](const std::string& text) {
    write_file(folder / "a.txt", text);
    Passages found;
    const std::string error = error_of([&] {
      read_passages(folder / "a.txt", [&found](std::int64_t line, std::string_view passage) {
        found.push_back(std::to_string(line) + " " + std::string(passage));
        return true;
      });
    });
    return error.empty() ? found.at(0) : error;
  };
  CHECK(read("\xEF\xBB\xBF one") == "1 one");
  CHECK(read(std::string("one\0two", 7)) ==
        "'" + (folder / "a.txt").string() + "': expected text, found a NUL byte");
  CHECK(read("one\n\xFF") == "invalid UTF-8 in " + (folder / "a.txt").string() + " at byte 4 (line 2)");
}

TEST_CASE("Only files that are new or have changed are embedded") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef\n\nghi");
  notes.write("b.txt", "abcabc\n\nklm");
  CHECK(notes.update() == 5);
  CHECK(notes.shards() == 3);
  notes.check_all_is_found();
  CHECK(notes.update() == 0);
  notes.check_all_is_found();
  notes.write("c.txt", "mmm");
  CHECK(notes.update() == 1);
  CHECK(notes.shards() == 3);  // the last one had room
  notes.write("b.txt", "klmklm\n\nabca");
  CHECK(notes.update() == 2);
  notes.check_all_is_found();
  // The same size at another time.
  notes.write("b.txt", "klmabc\n\nabca");
  fs::last_write_time(notes.folder / "b.txt", fs::file_time_type::clock::now() + std::chrono::seconds(1));
  CHECK(notes.update() == 2);
  notes.check_all_is_found();
  fs::rename(notes.folder / "a.txt", notes.folder / "d.txt");
  CHECK(notes.update() == 3);
  notes.check_all_is_found();
}

TEST_CASE("Scores and order are those of rank()") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef\n\nghi");
  notes.write("b.txt", "abcabc\n\nabc");
  CHECK(notes.update() == 5);
  const RankRequest asked{
      .query = "abc", .documents = {"abc", "def", "ghi", "abcabc", "abc"}, .top_k = 4, .batch_size = 1};
  const std::vector<RankedDocument> ranked = rank(embedders(), asked);
  const std::vector<SearchHit> hits = notes.index->search("abc", 4);
  REQUIRE(hits.size() == 4);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    CHECK(hits[i].score == Approx(ranked[i].score).margin(1e-6));
    CHECK(hits[i].text == asked.documents[ranked[i].index]);
    CHECK(hits[i].file == (ranked[i].index < 3 ? 0U : 1U));
  }
  CHECK(error_of([&] { notes.index->search("abc", 0); }) == "'top_k': expected at least 1, got 0");
  CHECK(error_of([&] { notes.index->update({}, {.batch_size = 0}); }) ==
        "'batch_size': expected at least 1, got 0");
}

TEST_CASE("A stopped update goes on where it was, and a lost shard is embedded again") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef\n\nghi\n\njkl\n\nm");
  notes.write("b.txt", "abcabc\n\nklm");
  const std::int64_t first = notes.update(3);
  CHECK(first >= 3);
  CHECK(notes.remaining == 7 - first);
  CHECK(notes.update() == 7 - first);
  CHECK(notes.remaining == 0);
  notes.check_all_is_found();
  fs::remove(notes.shard(1));
  CHECK(notes.update() == 2);
  notes.check_all_is_found();
}

TEST_CASE("Rows of files that are gone are removed when most of a shard is") {
  Notes notes;
  for (const char* name : {"a", "b", "c", "d", "e"})
    notes.write(std::string(name) + ".txt", std::string(name) + "abc");
  CHECK(notes.update() == 5);
  const auto size = fs::file_size(notes.shard(0));
  fs::remove(notes.folder / "a.txt");
  CHECK(notes.update() == 0);
  CHECK(fs::file_size(notes.shard(0)) == size);  // half of it
  notes.check_all_is_found();
  fs::remove(notes.folder / "b.txt");
  CHECK(notes.update() == 0);
  CHECK_FALSE(fs::exists(notes.shard(0)));
  notes.check_all_is_found();
  // Files that are there but not searched stay in the index.
  notes.index->update({notes.folder / "e.txt"});
  CHECK(notes.index->search("abc").size() == 1);
  CHECK(notes.update() == 0);
  notes.check_all_is_found();
}

TEST_CASE("An index of another model or prompt is refused") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef");
  CHECK(notes.update() == 2);
  const std::string refused =
      "'index': '" + (notes.folder / "index").string() +
      "' was made by another model, prompt or number format; delete it or name another";
  CHECK(error_of([&] { notes.update(1000, embedders(4)); }) == refused);
  CHECK(error_of([&] { notes.update(1000, embedders(3, "m")); }) == refused);
  SearchEmbedders dots = embedders();
  dots.normalizes = false;
  CHECK(error_of([&] { notes.update(1000, dots); }) == refused);
  CHECK(notes.update() == 0);
}

TEST_CASE("A damaged shard is refused by name") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef");
  CHECK(notes.update() == 2);
  const std::string name = "'" + notes.shard(0).string() + "'", whole = read_file(notes.shard(0));
  std::string flipped = whole;
  flipped[whole.size() - 1] = static_cast<char>(whole[whole.size() - 1] ^ 1);  // of a text
  std::ofstream(notes.shard(0)) << flipped;
  CHECK(notes.update() == 0);
  CHECK(error_of([&] { notes.index->search("abc"); }) ==
        name + ": tensor 'texts' differs from its checksum: the file is damaged");
  std::ofstream(notes.shard(0)) << whole.substr(0, whole.size() - 1);
  CHECK_THAT(error_of([&] { notes.update(); }), Contains(name + ": truncated"));
}

TEST_CASE("One process writes an index while others search") {
  Notes notes;
  notes.write("a.txt", "abc\n\ndef");
  CHECK(notes.update() == 2);
  const DirectoryLock other(notes.folder / "index");
  CHECK(notes.update() == 0);
  notes.check_all_is_found();
  notes.write("b.txt", "klm");
  CHECK_THAT(error_of([&] { notes.update(); }), Contains("is being written by process"));
}
