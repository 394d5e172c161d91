#include "apps/plots/loss_plot.h"

#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/plots/gnuplot.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

// The curves as gnuplot's inline data: lines of "iteration loss".
struct Curves {
  std::string train, val;
};

Curves read_curves(const std::filesystem::path& metrics) {
  Curves curves;
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) {
    const auto object = parse_json(line);
    if (!object.is_object() || !object.contains("iter")) continue;
    const auto point = [&](const char* key) {
      return object["iter"].dump() + " " + object[key].dump() + "\n";
    };
    if (object.contains("train_loss")) curves.train += point("train_loss");
    if (object.contains("val_loss")) curves.val += point("val_loss");
  }
  return curves;
}

}  // namespace

void plot_loss(const std::filesystem::path& metrics, const std::filesystem::path& output) {
  const Curves curves = read_curves(metrics);
  if (curves.train.empty()) throw Error("cannot draw ", output, ": ", metrics, " has no losses");
  std::string script = "$train << END\n" + curves.train + "END\n$val << END\n" + curves.val + "END\n";
  script += R"gp(
set terminal pngcairo size 1100,680 font "sans,13" background rgb "white"
set output OUTPUT
set border 3 lc rgb "#808080"
set tics nomirror out scale 0.6 textcolor rgb "#303030"
set format "%g"
set autoscale xfix
set grid ytics lc rgb "#e4e4e4" lw 1
set xlabel "iteration"
set ylabel "loss (nats per token)"
set key top right
set yrange [0:*]
)gp";
  std::string plot = R"(plot $train using 1:2 with lines lw 1.5 lc rgb "#9db8d9" title "training batch")";
  if (!curves.val.empty()) {
    plot += R"(, $val using 1:2 with linespoints lw 2.5 pt 7 ps 1.1 lc rgb "#c0392b" title "validation")";
  }
  gnuplot(script + plot + "\n", output);
}

}  // namespace zoo
