// ---- The models that Play goes through, as one animated SVG: a frame for each, shown by turns. It needs no script and no network.
const kFrameSeconds = 0.8;
// The answer, and what is open of a block, below one another.
const frameOf = (name) => {
  const frame = svgElement("g", {}), parts = ["answer-title", "chips", "moved", "lists", "attention-part"].map(byId).filter((part) => part.getClientRects().length > 0);
  frame.append(svgElement("text", { x: 4, y: 20, "font-size": 16, "font-family": "system-ui, sans-serif", fill: colour("--ink") }, name));
  let width = 0, height = 28;
  for (const part of parts) {
    const group = svgElement("g", { transform: `translate(0 ${height})` });
    frame.append(group);
    drawPanel(part, (wide, high) => {
      width = Math.max(width, wide);
      height += high + 8;
      return new SvgContext(group);
    });
  }
  return { frame, width, height };
};
// Of `count` frames, number `at` is seen in its turn; readers that do not animate show the last.
const seenInTurn = ({ frame }, at, count) => {
  const turns = Array.from({ length: count }, (_, i) => (i === at ? "visible" : "hidden")).join(";");
  frame.setAttribute("visibility", at === count - 1 ? "visible" : "hidden");
  frame.append(svgElement("animate", { attributeName: "visibility", values: turns, dur: `${(count * kFrameSeconds).toFixed(1)}s`, calcMode: "discrete", repeatCount: "indefinite" }));
  return frame;
};
const animationOf = (frames) => {
  const width = Math.max(...frames.map((each) => each.width)), height = Math.max(...frames.map((each) => each.height));
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(svgElement("rect", { width, height, fill: colour("--page") }), ...frames.map((each, at) => seenInTurn(each, at, frames.length)));
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
};
const saveAnimation = async () => {
  const before = state.model, frames = [], button = byId("animate");
  button.disabled = byId("play").disabled = true;
  try {
    for (const { id } of state.models) {
      await chooseModel(id);
      if (state.seen?.model !== id) return;  // its error is shown
      frames.push(frameOf(id));
    }
    download(animationOf(frames), "steps.svg");
    await chooseModel(before);
  } finally {
    button.disabled = byId("play").disabled = false;
  }
};
