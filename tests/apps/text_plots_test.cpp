#include <cmath>

#include "apps/plots/figures.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

HeatMap two_by_two() {
  return {.axes = {.title = "T", .x = "key", .y = "query"},
          .rows = {"iron", "man"},
          .columns = {"iron", "man"},
          .cells = {{0, 1}, {0.874, 0.126}},
          .low = 0,
          .high = 1};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a heat map as text has its values in the cells where they fit") {
  CHECK(text_heat_map(two_by_two(), {.width = 80}) == R"(T
      iron   man
iron  0.00  1.00
 man  0.87  0.13
rows: query, columns: key
)");
}

TEST_CASE("a heat map too wide for its values has shades, two characters a cell") {
  // 4 for the labels and 6 for each value make 16.
  CHECK(text_heat_map(two_by_two(), {.width = 15}) == R"(T
      0 1
iron   ██
 man ██  
rows: query, columns: key; 0 blank, 1 █
)");
}

TEST_CASE("a heat map wider than the terminal shows the largest of the cells that share a character") {
  HeatMap map{.axes = {.title = "T", .x = "x", .y = "y"}, .cells = {std::vector<double>(32, 0.0)}};
  map.cells[0][17] = 1;
  map.high = 1;
  map.values = false;
  // 16 places after the label "0" and a space: cells 16 and 17 are the ninth.
  const std::string text = text_heat_map(map, {.width = 18});
  CHECK(text ==
        "T\n0 " + std::string(8, ' ') + "█" + std::string(7, ' ') + "\nrows: y, columns: x; 0 blank, 1 █\n");
}

TEST_CASE("a heat map with texts has blocks of columns, as many as fit") {
  HeatMap map = two_by_two();
  map.texts = {{"the", "information"}, {"a", "北"}};
  // A space, ten columns of text and six of a number make a cell of 17; 4 are for the labels.
  CHECK(text_heat_map(map, {.width = 38}) == R"(T
     iron             man
iron the         0.00 informatio  1.00
 man a           0.87 北          0.13
rows: query, columns: key
)");
  CHECK(text_heat_map(map, {.width = 37}) == R"(T
     iron
iron the         0.00
 man a           0.87

     man
iron informatio  1.00
 man 北          0.13
rows: query, columns: key
)");
  const std::string colours = text_heat_map(map, {.width = 38, .colour = true});
  CHECK(count(colours, "\x1b[48;5;17;38;5;231minformatio  1.00\x1b[0m") == 1);
}

TEST_CASE("a gap in a heat map is empty") {
  HeatMap map{.axes = {.title = "T", .x = "x", .y = "y"}, .cells = {{1, std::nan(""), 1}}};
  map.high = 1;
  map.values = false;
  CHECK(text_heat_map(map, {.width = 40}) == "T\n   0 1 2\n0 ██  ██\nrows: y, columns: x; 0 blank, 1 █\n");
}

TEST_CASE("colours come only where they are asked for, and end on each cell") {
  CHECK(count(text_heat_map(two_by_two(), {.width = 80}), "\x1b[") == 0);
  const std::string text = text_heat_map(two_by_two(), {.width = 80, .colour = true});
  CHECK(count(text, "\x1b[48;5;") == 4);
  CHECK(count(text, "\x1b[0m") == 4);
  CHECK(count(text, "\x1b[48;5;17;38;5;231m  1.00\x1b[0m") == 1);
  CHECK(count(text, "\x1b[48;5;231;38;5;16m  0.00\x1b[0m") == 1);
}

TEST_CASE("bars as text: as long as their part of the top, to an eighth of a character") {
  // 10 of 20 columns are for the label and the number; at least 8 are left: 0.5 is 4 of them, 0.28125 2 1/4.
  const BarChart chart{.axes = {.title = "T", .x = "word", .y = "weight"},
                       .labels = {"a", "北"},
                       .values = {0.5, 0.28125},
                       .top = 1};
  CHECK(text_bar_chart(chart, {.width = 20}) == "T\na  ████ 0.5\n北 ██▎ 0.2812\nbars: weight, each a word\n");
}

TEST_CASE("lines as text: the ends of the axes, a mark for each line") {
  const std::vector<Curve> lines{{"up", {0, 1}, {1, 100}}, {"level", {0, 1}, {1, 1}}};
  const std::string text =
      text_line_chart({.title = "T", .x = "x", .y = "y", .log_y = true}, lines, {.width = 32});
  const std::string first = text.substr(text.find('\n') + 1, text.find('\n', 2) - 2);
  CHECK(first == "      100 │" + std::string(19, ' ') + "*");
  CHECK(count(text, "        1 │oooooooooooooooooooo\n") == 1);
  CHECK(count(text, "across: x, up: y (logarithmic)\n* up   o level\n") == 1);
  CHECK(count(text, "\n           0                  1\n") == 1);
}

TEST_CASE(
    "a sheet as text names curves once if all its panels have the same, and a curve alone by its axis") {
  const auto panel = [](const char* second) {
    return line_chart({.title = "a", .x = "x", .y = "y"},
                      {{"one", {1, 2}, {1, 2}}, {second, {1, 2}, {3, 5}}});
  };
  const std::string same = grid("A sheet", {panel("two"), panel("two")}, 2).text({});
  CHECK(count(same, "* one   o two\n") == 1);
  CHECK(same.ends_with("across: x, up: y\n* one   o two\n"));
  CHECK(count(grid("A sheet", {panel("two"), panel("other")}, 2).text({}), "* one") == 2);
  const Figure alone = line_chart({.title = "a", .x = "x", .y = "y"}, {{"one", {1, 2}, {1, 2}}});
  CHECK(alone.text({}).ends_with("across: x, up: y\n"));
}

TEST_CASE("words as text stand at their places, and where two meet the first is whole") {
  const std::vector<WordPoint> points{{0, 0, "low", 0}, {1, 1, "high", 1}, {0, 0, "hidden", 1}};
  const std::string text = text_word_scatter({.title = "T", .x = "x", .y = "y"}, points, {.width = 40});
  CHECK(count(text, "low") == 1);
  CHECK(count(text, "hidden") == 0);
  CHECK(text.find("high") < text.find("low"));
}

TEST_CASE("a logarithmic axis names the places of its points, and a line says where training ended") {
  const Figure figure = line_chart({.title = "a", .x = "words", .y = "right", .log_x = true, .trained = 24},
                                   {{"one", {24, 48, 96}, {1, 0.5, 0.25}}});
  CHECK_THAT(figure.script, Catch::Contains("set xtics (\"24\" 24, \"48\" 48, \"96\" 96)"));
  CHECK_THAT(figure.script, Catch::Contains("from 24, graph 0 to 24, graph 1"));
  CHECK_THAT(figure.script, Catch::Contains("set yrange [0:1.0375]"));
  CHECK_THAT(figure.text({}), Catch::Contains("trained to 24"));
}

TEST_CASE("a curve that would hide an earlier one is dashed") {
  const auto dashed = [](std::vector<double> second) {
    const Figure figure = line_chart({.title = "a", .x = "x", .y = "y"},
                                     {{"one", {1, 2, 3}, {1, 2, 3}}, {"two", {1, 2, 3}, std::move(second)}});
    return figure.script.find("dt 2") != std::string::npos;
  };
  CHECK(dashed({1, 2, 3}));
  CHECK(dashed({1, 2, 5}));
  CHECK_FALSE(dashed({1, 2.5, 5}));
}

TEST_CASE("a sheet has one legend if all its curves have the same") {
  const auto panel = [](const char* second) {
    return line_chart({.title = "a", .x = "x", .y = "y"},
                      {{"one", {1, 2}, {1, 2}}, {second, {1, 2}, {3, 5}}, {"three", {1, 2}, {9, 8}}});
  };
  const Figure bars = bar_chart({.labels = {"a"}, .values = {1}});
  const std::string same = grid("A sheet", {panel("two"), panel("two"), bars, bars}, 2).script;
  // Of 60 pixels for the title and 460 for each row, the legend is at 8 above the second.
  CHECK(count(same, "set key at screen 0.5,0.47755102 center bottom horizontal") == 1);
  CHECK(count(same, "set key below") == 0);
  const std::string different = grid("A sheet", {panel("two"), panel("other")}, 2).script;
  CHECK(count(different, "set key below") == 2);
  CHECK(count(grid("A sheet", {panel("two"), bars}, 2).script, "set key at screen") == 0);
}

TEST_CASE("the decades of a logarithmic axis are named where there are many, else 1, 2 and 5 of each") {
  const auto script = [](double high) {
    return line_chart({.title = "a", .x = "x", .y = "ms", .log_y = true}, {{"one", {1, 2}, {0.3, high}}})
        .script;
  };
  CHECK_THAT(script(30),
             Catch::Contains("set ytics (\"0.5\" 0.5, \"1\" 1, \"2\" 2, \"5\" 5, \"10\" 10, \"20\" 20)"));
  CHECK_THAT(script(3000), Catch::Contains("set ytics (\"1\" 1, \"10\" 10, \"100\" 100, \"1000\" 1000)"));
}
