// ---- The model as drawn in the paper: from the embeddings at the bottom to the answer at the top.
const toggle = (site, on) => {
  if (on) state.off.delete(site);
  else state.off.add(site);
  look();
};
const switchOf = (site, label, kind, says) => {
  const input = element("input", { type: "checkbox", checked: !state.off.has(site), "aria-label": says });
  input.dataset.site = site;
  input.addEventListener("click", (event) => {
    if (state.click !== "patch") return toggle(site, input.checked);
    event.preventDefault();  // stays as it is
    onDrawing.patch(site);
  });
  return element("label", { className: `switch ${kind}`, title: says }, input, label);
};

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
// On a narrow screen, where the opened block is below the others, scrolls it into view.
const openLayer = async (layer) => {
  state.layer = state.layer === layer ? null : layer;
  await look();
  const below = byId("opened").getBoundingClientRect().top > innerHeight;
  if (state.layer !== null && below) byId("opened").scrollIntoView({ behavior: isStill() ? "auto" : "smooth" });
};

const saysOf = (row) => {
  const best = row?.answers[0];
  return best ? element("span", { className: "says" }, element("b", { textContent: visible(best.name) }), ` ${percent(best.probability)}`) : "";
};

// The longest state has the full width.
const lengthBar = (row, longest) => {
  const inner = element("i");
  inner.style.width = `${(100 * row[place()]) / longest}%`;
  return element("div", { className: "length", title: `length of the residual stream ${row[place()].toPrecision(4)}` }, inner);
};
// A token's state after the block, for each token: a click looks at its query or patches it.
const kMostFlow = 64;
const flowOf = (layer) => {
  const { patch } = state, row = element("div", { className: "flow", role: "group", "aria-label": `Tokens after block ${layer}` });
  labels(stackTokens()).forEach((token, i) => {
    const says = state.click === "look" ? `token ${i} ${token} in block ${layer}: follow its query` : `patch token ${i} ${token} after block ${layer}`;
    const button = element("button", { type: "button", title: says, "aria-label": says, tabIndex: i === 0 ? 0 : -1 });
    button.dataset.flow = `${layer}.${i}`;
    button.classList.toggle("patched", patchFits() && patch.part === "residual" && patch.layer === layer && ["", String(i)].includes(patch.position));
    button.addEventListener("click", () => {
      if (state.click !== "look") return patchAt("residual", layer, { position: String(i) });
      Object.assign(state, { layer, query: i, key: null, head: Math.max(0, state.head) });
      return look();
    });
    row.append(button);
  });
  return row;
};
// The column of the answer's position among the stack's tokens; a classifier's is its first token.
const place = () => Math.min(state.seen.position, state.seen.norms[0].length - 1);

// The sublayers in their order, with their norms before, after, or after the sum.
const sublayersOf = (layer) => {
  const { cross, parallel, norm } = shape(), line = element("div", { className: "subs" });
  const box = (name) => {
    const numbers = normOf(layer, name);
    return element("span", { className: "norm", title: numbers ? normSays(numbers) : "", textContent: numbers ? `norm ÷ ${shortNumber(numbers.divisor)}` : "norm" });
  };
  for (const part of cross ? ["attention", "cross_attention", "feed_forward"] : ["attention", "feed_forward"]) {
    const name = part.replace("_", "-");
    if (norm === "pre" || norm === "sandwich") line.append(box(`${part}_norm`));
    line.append(switchOf(`sublayers ${layer}.${part}`, name, part, `${name} of block ${layer}`));
    if (norm === "sandwich" || norm === "branch_end") line.append(box(`${part}${norm === "sandwich" ? "_end" : ""}_norm`));
    line.append(parallel && part !== "feed_forward" ? "+" : "⊕");
    if (norm === "post") line.append(box(`${part}_norm`));
  }
  return line;
};

const blockOf = (layer, longest) => {
  const { lens, norms } = state.seen;
  const open = element("button", { type: "button", className: "open", "aria-expanded": String(state.layer === layer), textContent: `Block ${layer}` });
  open.dataset.layer = layer;
  open.addEventListener("click", () => clicked(`layers ${layer}`) || openLayer(layer));
  const item = element("li", {}, element("div", { className: "line" }, open, saysOf(lens?.[layer + 1]),
    switchOf(`layers ${layer}`, "on", "layer", `block ${layer}`)), sublayersOf(layer));
  const here = isPair() && shape().stack === "encoder" ? null : norms[layer + 1];
  if (here) item.append(lengthBar(here, longest));
  if (stackTokens().length <= kMostFlow) item.append(flowOf(layer));
  item.setAttribute("aria-current", String(state.layer === layer));
  return item;
};

// A model with fewer blocks than the one before it opens its first.
const opensFirst = ({ param }) => {
  const opens = param === "layer" && state.layer > 0;
  if (opens) state.layer = 0;
  return opens;
};

// A query or a head that the shorter text or the smaller model lacks.
const leavesHead = ({ param }) => {
  if (param === "query" && state.query !== null) state.query = state.key = null;
  else if (param === "head" && state.head >= 0) state.head = -1;
  else if (param === "cross" && state.map === "cross") state.map = "self";
  else return false;
  return true;
};

const kBlocks = {
  pre: "x ← x + Attention(norm(x));  x ← x + FFN(norm(x))", post: "x ← norm(x + Attention(x));  x ← norm(x + FFN(x))",
  sandwich: "x ← x + norm(Attention(norm(x)));  x ← x + norm(FFN(norm(x)))", branch_end: "x ← x + norm(Attention(x));  x ← x + norm(FFN(x))",
};
const kPositions = { rotary: "rotary positions, in the attention", t5_buckets: "relative positions, in the attention", alibi: "ALiBi, in the attention", none: "no positions" };
const renderBlocks = () => {
  const { norms, lens } = state.seen, { layers, positions, norm } = shape();
  const longest = Math.max(...norms.map((row) => row[place()]));
  const focused = document.activeElement?.dataset;
  const focus = focused?.site ? `[data-site="${focused.site}"]` : focused?.layer ? `[data-layer="${focused.layer}"]`
    : focused?.flow ? `[data-flow="${focused.flow}"]` : null;
  const end = (className, text, row) => element("li", { className: `end ${className}` },
    element("div", { className: "line" }, element("span", { textContent: text }), saysOf(row)));
  const items = [end("embedding", `Embedding + ${kPositions[positions] ?? `${positions.replaceAll("_", " ")} positions`}`, lens?.[0])];
  for (let layer = 0; layer < layers; ++layer) items.push(blockOf(layer, longest));
  items.push(end("output", `${norm === "post" ? "" : "norm → "}${{ labels: "head → sigmoid", score: "head" }[state.seen.answer?.kind] ?? (state.seen.answer ? "head → softmax" : "no answer")}`, null));
  byId("blocks").replaceChildren(...items);
  if (focus) byId("blocks").querySelector(focus)?.focus();
  byId("blocks-legend").hidden = !lens;
  byId("stack-label").hidden = !isPair();
  byId("stack").value = shape().stack;
  byId("block-equation").textContent = kBlocks[norm];
};
