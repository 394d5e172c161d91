// ---- The model as the paper draws it: from the embeddings below to the answer above.
const toggle = (site, on) => {
  if (on) state.off.delete(site);
  else state.off.add(site);
  look();
};
const switchOf = (site, label, kind, says) => {
  const input = element("input", { type: "checkbox", checked: !state.off.has(site), "aria-label": says });
  input.dataset.site = site;
  input.addEventListener("change", () => toggle(site, input.checked));
  return element("label", { className: `switch ${kind}`, title: says }, input, label);
};

const openLayer = (layer) => {
  state.layer = state.layer === layer ? null : layer;
  look();
};

const saysOf = (row) => {
  const best = row?.answers[0];
  return best ? element("span", { className: "says" }, element("b", { textContent: visible(best.name) }), ` ${percent(best.probability)}`) : "";
};

// The longest state has the whole width.
const lengthBar = (row, longest) => {
  const inner = element("i");
  inner.style.width = `${(100 * row[place()]) / longest}%`;
  return element("div", { className: "length", title: `length of the residual stream ${row[place()].toPrecision(4)}` }, inner);
};
// The column of the stack's tokens that the answer is read at; a classifier's is its first token.
const place = () => Math.min(state.seen.position, state.seen.norms[0].length - 1);

const blockOf = (layer, longest) => {
  const { lens, norms } = state.seen, { cross, parallel } = shape();
  const open = element("button", { type: "button", className: "open", "aria-expanded": String(state.layer === layer), textContent: `Block ${layer}` });
  open.dataset.layer = layer;
  open.addEventListener("click", () => openLayer(layer));
  const parts = cross ? ["attention", "cross_attention", "feed_forward"] : ["attention", "feed_forward"];
  const subs = element("div", { className: "subs" });
  for (const part of parts) {
    const name = part.replace("_", "-");
    if (part !== "attention") subs.append(parallel ? " + " : " → ");
    subs.append(switchOf(`sublayers ${layer}.${part}`, name, part, `${name} of block ${layer}`));
  }
  const item = element("li", {}, element("div", { className: "line" }, open, saysOf(lens?.[layer + 1]),
    switchOf(`layers ${layer}`, "on", "layer", `block ${layer}`)), subs);
  const here = isPair() && shape().stack === "encoder" ? null : norms[layer + 1];
  if (here) item.append(lengthBar(here, longest));
  item.setAttribute("aria-current", String(state.layer === layer));
  return item;
};

const kPositions = { rotary: "rotary positions, in the attention", t5_buckets: "relative positions, in the attention", alibi: "ALiBi, in the attention", none: "no positions" };
const renderBlocks = () => {
  const { norms, lens } = state.seen, { layers, positions, post_norm: post } = shape();
  const longest = Math.max(...norms.map((row) => row[place()]));
  const focused = document.activeElement?.dataset;
  const focus = focused?.site ? `[data-site="${focused.site}"]` : focused?.layer ? `[data-layer="${focused.layer}"]` : null;
  const end = (className, text, row) => element("li", { className: `end ${className}` },
    element("div", { className: "line" }, element("span", { textContent: text }), saysOf(row)));
  const items = [end("embedding", `Embedding + ${kPositions[positions] ?? `${positions.replaceAll("_", " ")} positions`}`, lens?.[0])];
  for (let layer = 0; layer < layers; ++layer) items.push(blockOf(layer, longest));
  items.push(end("output", `${post ? "" : "Norm → "}head → softmax`, null));
  byId("blocks").replaceChildren(...items);
  if (focus) byId("blocks").querySelector(focus)?.focus();
  byId("stack-label").hidden = !isPair();
  byId("stack").value = shape().stack;
  byId("block-equation").textContent = post ? "x ← norm(x + Attention(x));  x ← norm(x + FFN(x))" : "x ← x + Attention(norm(x));  x ← x + FFN(norm(x))";
};
