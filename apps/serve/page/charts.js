// ---- Axes of the charts: lines, numbers, and names with their units; and what the colours of weights mean.
const drawAxes = (context, { left, top, right, bottom, ticks, name }) => {
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(left - 0.5, top);
  context.lineTo(left - 0.5, bottom + 0.5);
  context.lineTo(right, bottom + 0.5);
  context.stroke();
  context.font = `11px ${kFont}`;
  context.fillStyle = colour("--faint");
  context.textAlign = "right";
  for (const { y, text } of ticks) context.fillText(text, left - 6, y);
  context.textAlign = "left";
  context.fillText(name, 0, 7);
};
const drawRamps = () => {
  for (const ramp of document.querySelectorAll(".ramp")) paint(ramp, 64, 1, (i) => i / 63);
};

const kLongestName = 60;
// The norms of all tokens after the opened block, as bars; a mark shows those before it.
const renderNorms = () => {
  const ofHead = !isPair() || shape().stack === "decoder", canvas = byId("norms");
  const after = state.seen.norms[state.layer + 1], before = state.seen.norms[state.layer], tokens = labels(answerTokens());
  byId("norms-part").hidden = !ofHead;
  if (!ofHead) return;
  const left = 40, top = 20, bottom = 116, most = Math.max(...after, ...before);
  const step = Math.max(6, Math.min(34, Math.floor((widthAround(canvas) - left - 4) / after.length)));
  const probe = canvas.getContext("2d");
  probe.font = `11px ${kFont}`;
  const names = Math.min(kLongestName, Math.max(...tokens.map((token) => probe.measureText(token).width)));
  const context = prepared(canvas, left + step * after.length + 2, bottom + names + 10), y = (value) => bottom - ((bottom - top) * value) / most;
  drawAxes(context, { left, top, right: left + step * after.length, bottom, name: "‖x‖",
    ticks: [0, most / 2, most].map((value) => ({ y: y(value), text: value.toPrecision(2) })) });
  const skip = Math.ceil(11 / step);  // tokens whose names would overlap are left out
  after.forEach((value, i) => {
    const x = left + i * step;
    context.fillStyle = colour(i === place() ? "--accent" : "--faint");
    context.fillRect(x + 1, y(value), step - 2, bottom - y(value));
    context.fillStyle = colour("--mark");
    context.fillRect(x + 1, y(before[i]) - 1, step - 2, 2);
    if (i % skip === 0) upright(context, tokens[i], x + step / 2, bottom + 5);
  });
  canvas.setAttribute("aria-label", `Lengths after block ${state.layer}: ` + after.map((value) => value.toPrecision(3)).join(", "));
};
const upright = (context, text, x, y) => {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.font = `11px ${kFont}`;
  context.textAlign = "right";
  context.fillStyle = colour("--ink");
  context.fillText(text, 0, 0, kLongestName);
  context.restore();
};
