#include "apps/command/progress.h"

#include <sstream>

#include "tests/support/catch.h"

using namespace zoo;

namespace {

struct Screen {
  std::ostringstream out;
  double now = 100;
  int columns = 80;

  Terminal terminal(bool interactive = true) {
    return {.out = &out,
            .interactive = interactive,
            .width = [this] { return columns; },
            .clock = [this] { return now; }};
  }

  // Text written since the last call.
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

}  // namespace

TEST_CASE("a bar shows share, count, status and the time left from where the work began") {
  Screen screen;
  Progress progress(2000, "iterations", screen.terminal());
  progress.update(1000, "loss 4.0");
  CHECK(screen.take() == "\r[=============>             ] 50%  1000/2000 iterations  loss 4.0\x1b[K");
  screen.now += 10;
  progress.update(1100, "loss 3.5");
  // 100 iterations took 10 s, 900 are left.
  CHECK(screen.take() ==
        "\r[==============>            ] 55%  1100/2000 iterations  loss 3.5  1:30 left\x1b[K");
}

TEST_CASE("a bar is drawn at most ten times a second and cleared at the end") {
  Screen screen;
  {
    Progress progress(10, "files", screen.terminal());
    progress.update(0);
    screen.take();
    screen.now += 0.05;
    progress.update(1);
    CHECK(screen.take().empty());
    screen.now += 0.06;
    progress.update(2);
    CHECK_THAT(screen.take(), Catch::Contains("2/10 files"));
  }
  CHECK(screen.take() == "\r\x1b[K");
}

TEST_CASE("a line is printed above the bar, which is drawn again") {
  Screen screen;
  Progress progress(10, "files", screen.terminal());
  progress.print("before");
  CHECK(screen.take() == "before\n");
  progress.update(5);
  screen.take();
  progress.print("saved");
  const std::string text = screen.take();
  CHECK_THAT(text, Catch::StartsWith("\r\x1b[Ksaved\n\r[") && Catch::Contains("5/10 files"));
}

TEST_CASE("in a pipe there are lines but no bar") {
  Screen screen;
  {
    Progress progress(10, "files", screen.terminal(false));
    progress.update(5, "status");
    CHECK(screen.take().empty());
    progress.print("saved");
    CHECK_FALSE(progress.on_terminal());
  }
  CHECK(screen.take() == "saved\n");
}

TEST_CASE("a narrow terminal gets the share and the time left, then what fits of the rest") {
  Screen screen;
  Progress progress(2000, "iterations", screen.terminal());
  const auto line_at = [&](int columns) {
    screen.columns = columns;
    screen.now += 1;
    progress.update(1100, "loss 3.5  lr 1.0e-03");
    return screen.take();
  };
  progress.update(1000);
  line_at(80);
  // 100 iterations took a second more with each line; 900 are left.
  CHECK(line_at(64) == "\r[=======>      ] 55%  1100/2000 iterations  loss 3.5  0:18 left\x1b[K");
  CHECK(line_at(52) == "\r55%  1100/2000 iterations  loss 3.5  0:27 left\x1b[K");
  CHECK(line_at(40) == "\r55%  1100/2000 iterations  0:36 left\x1b[K");
  CHECK(line_at(30) == "\r55%  1100/2000  0:45 left\x1b[K");
  CHECK(line_at(12) == "\r55%  1100/2\x1b[K");
}

TEST_CASE("work of unknown size shows its count only") {
  Screen screen;
  Progress progress(0, "bytes", screen.terminal());
  progress.update(12);
  CHECK(screen.take() == "\r12 bytes\x1b[K");
}

TEST_CASE("a colour is used only where it is wanted") {
  Screen screen;
  Terminal terminal = screen.terminal();
  terminal.colour = true;
  Progress progress(2, "files", terminal);
  progress.update(1);
  CHECK_THAT(screen.take(), Catch::Contains("[\x1b[32m=") && Catch::Contains("\x1b[0m "));
}

TEST_CASE("the time of work that is not counted is no part of the estimate") {
  Screen screen;
  Progress progress(100, "iterations", screen.terminal());
  progress.update(0);
  screen.now += 10;
  progress.update(10);
  screen.now += 500;
  screen.take();
  progress.aside("evaluating 1/2");
  CHECK_THAT(screen.take(), Catch::Contains("10/100 iterations  evaluating 1/2  1:30 left"));
  screen.now += 500;
  progress.aside("evaluating 2/2");
  screen.now += 10;
  progress.update(20);
  // 20 iterations took 20 s, 80 are left.
  CHECK_THAT(screen.take(), Catch::Contains("20/100 iterations  1:20 left"));
}
