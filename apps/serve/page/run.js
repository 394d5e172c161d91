// ---- A training run in progress: its loss over the iterations.
const kPollSeconds = 2;
let rows = [];

const drawLoss = () => {
  const canvas = byId("loss"), width = widthAround(canvas), left = 40, top = 22, bottom = 168, right = width - 8;
  const context = prepared(canvas, width, 208);
  const losses = rows.flatMap(([, train, validation]) => [train, validation]).filter((loss) => loss !== null);
  const most = Math.max(...losses), least = Math.min(...losses), last = Math.max(1, rows.at(-1)[0]);
  const x = (iteration) => left + ((right - left) * iteration) / last;
  const y = (loss) => top + ((bottom - top) * (most - loss)) / Math.max(1e-9, most - least);
  drawAxes(context, { left, top, right, bottom, name: "loss, nats per token",
    ticks: [most, (most + least) / 2, least].map((loss) => ({ y: y(loss), text: loss.toFixed(2) })) });
  for (const [iteration, align] of [[0, "left"], [last / 2, "center"], [last, "right"]]) {
    context.textAlign = align;
    context.fillText(Math.round(iteration).toLocaleString("en"), x(iteration), bottom + 14);
  }
  context.fillText("iteration", right, bottom + 30);
  const draw = (column, style, thick) => {
    context.strokeStyle = colour(style);
    context.lineWidth = thick;
    context.beginPath();
    rows.filter((row) => row[column] !== null).forEach((row, i) => context[i === 0 ? "moveTo" : "lineTo"](x(row[0]), y(row[column])));
    context.stroke();
  };
  draw(1, "--faint", 1);
  draw(2, "--accent", 2);
};

const renderRun = () => {
  if (rows.length === 0) return;
  const [iteration, train] = rows.at(-1), validation = rows.findLast((row) => row[2] !== null), speed = rows.findLast((row) => row[3] > 0);
  byId("loss-now").textContent = `Iteration ${iteration.toLocaleString("en")}: training loss ${train?.toFixed(3) ?? "not finite"}` +
    (validation ? `, validation loss ${validation[2].toFixed(3)}` : "") +
    (speed ? `, ${Math.round(speed[3]).toLocaleString("en")} tokens a second` : "");
  byId("loss").setAttribute("aria-label", byId("loss-now").textContent);
  drawLoss();
};

const watchRun = async (name) => {
  byId("run-part").hidden = false;
  byId("run-name").textContent = name;
  for (;;) {
    try {
      const count = rows.length;
      ({ rows } = await reach("/run"));
      if (rows.length !== count) renderRun();
    } catch (error) {
      byId("loss-now").textContent = error.message;
    }
    await new Promise((done) => setTimeout(done, 1000 * kPollSeconds));
  }
};
