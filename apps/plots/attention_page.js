const data = JSON.parse(byId("data").textContent);
for (const map of data.maps) {
  const size = { rows: map.queries.length, columns: map.keys.length, causal: map.causal };
  map.levels = decodedLevels(bytesOf(map.weights), map.layers * map.heads * size.rows * size.columns, size);
  delete map.weights;
}
const state = { map: 0, layer: 0, head: 0, order: "layer", token: null, hidesSpecial: false };
const current = () => data.maps[state.map];

// One layer in the format of weights.js.
const layerOf = (map, layer) => {
  const size = map.heads * map.queries.length * map.keys.length;
  return { kind: map.name, queries: map.queries, keys: map.keys, heads: map.heads, values: map.levels.subarray(layer * size, (layer + 1) * size) };
};
const patternAt = (map, layer, head) => {
  if (head < 0) return patternsOf(layerOf(map, layer), head);
  const [entropy, itself, previous, next, first, duplicate, induction] = map.patterns[layer * map.heads + head];
  return { entropy, first, itself, previous, next, duplicate, induction };
};
const kOrders = { layer: "by layer", entropy: "least entropy", itself: "on itself", previous: "on the previous", next: "on the next", first: "on the first token",
  duplicate: "on the same token before", induction: "on what followed the same token" };
const patternText = (pattern) => `entropy ${pattern.entropy.toFixed(2)} bits; mean weight on ` + Object.entries(pattern)
  .filter(([name, share]) => name !== "entropy" && share !== null).map(([name, share]) => `${name} ${share.toFixed(3)}`).join(", ");
const nameOf = (head) => (head < 0 ? "mean of its heads" : `head ${head}`);

// How far a head selects tokens by content: the mean over the queries of the largest weight on a key minus
// the key's average over all queries. Ignores keys near the query, the first one and special tokens: most
// heads attend to these in every text.
const picks = (map, layer, head) => {
  const weight = headOf(layerOf(map, layer), head), queries = map.queries.length, keys = map.keys.length;
  const far = (q, k) => k > 0 && !map.specialKeys.includes(k) && (map.name === "cross" || Math.abs(q - k) > 2);
  const usual = Array.from({ length: keys }, (_, k) => {
    const first = map.causal ? k : 0;
    let sum = 0;
    for (let q = first; q < queries; ++q) sum += weight(q, k);
    return sum / (queries - first);
  });
  let score = 0;
  for (let q = 0; q < queries; ++q) {
    let most = 0;
    for (let k = 0; k < keys; ++k) if (far(q, k)) most = Math.max(most, weight(q, k) - usual[k]);
    score += most / queries;
  }
  return score;
};
const interesting = (map) => {
  let best = { layer: 0, head: 0, score: -1 };
  for (let layer = 0; layer < map.layers; ++layer) {
    for (let head = 0; head < map.heads; ++head) {
      const score = picks(map, layer, head);
      if (score > best.score) best = { layer, head, score };
    }
  }
  return best;
};

// ---- The small maps.
const kSmall = 64;  // pixels per side; a pixel shows the largest of its weights, so that none is lost
const paintSmall = (canvas, map, layer, head) => {
  const weight = headOf(layerOf(map, layer), head), { queries, keys } = map;
  const high = Math.min(kSmall, queries.length), wide = Math.min(kSmall, keys.length);
  const cells = new Float32Array(high * wide);
  for (let q = 0; q < queries.length; ++q) {
    for (let k = 0; k < keys.length; ++k) {
      const at = Math.floor((q * high) / queries.length) * wide + Math.floor((k * wide) / keys.length);
      cells[at] = Math.max(cells[at], weight(q, k));
    }
  }
  paint(canvas, wide, high, (i) => cells[i]);
};
const smallMap = (map, layer, head) => {
  const canvas = element("canvas");
  paintSmall(canvas, map, layer, head);
  const label = `Layer ${layer}, ${nameOf(head)}: ${patternText(patternAt(map, layer, head))}`;
  const button = element("button", { type: "button", title: `layer ${layer}, ${nameOf(head)}`, "aria-label": label }, canvas);
  button.addEventListener("click", () => go({ layer, head }));
  button.dataset.place = `${layer}.${head}`;
  return button;
};
const byLayer = (map) => {
  const name = (textContent) => element("span", { className: "name", textContent });
  const cells = [name("layer"), ...Array.from({ length: map.heads }, (_, head) => name(String(head))), name("mean")];
  for (let layer = 0; layer < map.layers; ++layer) {
    cells.push(name(String(layer)));
    for (let head = 0; head < map.heads; ++head) cells.push(smallMap(map, layer, head));
    cells.push(smallMap(map, layer, -1));
  }
  return cells;
};
const byPattern = (map) => {
  const heads = [];
  for (let layer = 0; layer < map.layers; ++layer) {
    for (let head = 0; head < map.heads; ++head) heads.push({ layer, head, value: patternAt(map, layer, head)[state.order] ?? 0 });
  }
  heads.sort((a, b) => (state.order === "entropy" ? a.value - b.value : b.value - a.value));
  return heads.map(({ layer, head, value }) =>
    element("figure", {}, smallMap(map, layer, head), element("figcaption", { textContent: `${layer}.${head} · ${value.toFixed(2)}` })));
};
const fillGrid = () => {
  const map = current(), grid = byId("grid"), ordered = state.order !== "layer";
  grid.style.gridTemplateColumns = ordered ? "repeat(auto-fill, minmax(4.2rem, 1fr))" : `auto repeat(${map.heads + 1}, minmax(0, 6rem))`;
  grid.style.setProperty("--shape", String(Math.min(4, Math.max(0.25, map.keys.length / map.queries.length))));
  grid.replaceChildren(...(ordered ? byPattern(map) : byLayer(map)));
};

// ---- One head. The view omits hidden tokens; `at` maps an index of the view to a position.
let view = null;
const readout = (text) => { byId("readout").textContent = text; };
const say = (token) => {
  if (!token) return readout("");
  const { side, index } = token, others = side === 0 ? view.keys : view.queries;
  const weight = (i) => (side === 0 ? view.weight(index, i) : view.weight(i, index));
  const best = others.map((_, i) => i).sort((a, b) => weight(b) - weight(a)).slice(0, 4);
  const place = (which, i) => `${view.at[which][i]} ${(which === 0 ? view.queries : view.keys)[i]}`;
  readout(`${place(side, index)} ${side === 0 ? "attends to" : "is attended by"} ` +
    best.map((i) => `${place(1 - side, i)} ${weight(i).toFixed(3)}`).join(", "));
};
const chooseToken = (token) => {
  state.token = token?.side === 0 ? view.at[0][token.index] : null;
  heat.choose(token?.side === 0 ? token.index : null);
};
const lines = makeLines(byId("lines"), { onHover: say, onPick: chooseToken });
const heat = makeHeat(byId("heat"), {
  onHover: (cell) => readout(cell ? `${view.at[0][cell.query]} ${view.queries[cell.query]} → ${view.at[1][cell.key]} ${view.keys[cell.key]}: ` +
    view.weight(cell.query, cell.key).toFixed(3) : ""),
  onPick: (cell) => cell && chooseQuery(view.at[0][cell.query] === state.token ? -1 : cell.query),
});
const chooseQuery = (index) => {
  const query = index < 0 ? null : Math.min(index, view.queries.length - 1);
  state.token = query === null ? null : view.at[0][query];
  lines.choose(query);
  heat.choose(query);
};

const viewOf = (map) => {
  const weight = headOf(layerOf(map, state.layer), state.head);
  const kept = (tokens, special) => {
    const all = tokens.map((_, i) => i), others = all.filter((i) => !special.includes(i));
    return state.hidesSpecial && others.length > 0 ? others : all;  // something is always shown
  };
  const at = [kept(map.queries, map.specialQueries), kept(map.keys, map.specialKeys)];
  return { at, queries: at[0].map((i) => map.queries[i]), keys: at[1].map((i) => map.keys[i]), weight: (q, k) => weight(at[0][q], at[1][k]) };
};
const fillMost = () => {
  byId("most").replaceChildren(...view.queries.map((token, q) => {
    let best = 0;
    for (let k = 1; k < view.keys.length; ++k) if (view.weight(q, k) > view.weight(q, best)) best = k;
    const cells = [String(view.at[0][q]), token, `${view.at[1][best]} ${view.keys[best]}`, view.weight(q, best).toFixed(3)];
    return element("tr", {}, ...cells.map((textContent) => element("td", { textContent })));
  }));
};
const fill = (select, options, value) => {
  select.replaceChildren(...options.map(([key, textContent]) => element("option", { value: key, textContent })));
  select.value = value;
};
const numbers = (count) => Array.from({ length: count }, (_, i) => [String(i), String(i)]);
const show = () => {
  const map = current(), text = patternText(patternAt(map, state.layer, state.head));
  byId("one-title").textContent = `Layer ${state.layer}, ${nameOf(state.head)}`;
  byId("map").value = String(state.map);
  fill(byId("layer"), numbers(map.layers), String(state.layer));
  fill(byId("head"), [...numbers(map.heads), ["-1", "mean"]], String(state.head));
  byId("special-label").hidden = map.specialQueries.length + map.specialKeys.length === 0;
  byId("pattern").textContent = text;
  byId("why").hidden = state.layer !== state.opened?.layer || state.head !== state.opened?.head;
  for (const button of byId("grid").querySelectorAll("button")) {
    button.setAttribute("aria-current", String(button.dataset.place === `${state.layer}.${state.head}`));
  }
  view = viewOf(map);
  lines.show(view);
  heat.show(view);
  const index = view.at[0].indexOf(state.token);
  lines.choose(index < 0 ? null : index);
  heat.choose(index < 0 ? null : index);
  reachScrolled();
  for (const id of ["lines", "heat"]) byId(id).setAttribute("aria-label", `Layer ${state.layer}, ${nameOf(state.head)}, ${view.queries.length} by ${view.keys.length} tokens; ${text}`);
  fillMost();
};
const go = (change) => {
  const before = state.map;
  Object.assign(state, change);
  const map = current();
  state.layer = Math.max(0, Math.min(map.layers - 1, state.layer));
  state.head = Math.max(-1, Math.min(map.heads - 1, state.head));
  if (state.map !== before) {
    state.token = null;
    fillGrid();
  }
  show();
};
// Steps through all heads, layer by layer.
const step = (by) => {
  const map = current(), count = map.layers * map.heads;
  const at = (state.layer * map.heads + Math.max(0, state.head) + by + count) % count;
  go({ layer: Math.floor(at / map.heads), head: at % map.heads });
};
const open = () => {
  state.map = Math.max(0, data.maps.findIndex(({ layers, heads }) => layers > data.layer && heads > data.head));
  const map = current();
  const found = data.layer !== null && data.head !== null ? null : interesting(map);
  state.opened = found;
  byId("why").textContent = found ? "The page opens here: of all heads, this one picks out single tokens most, beyond two places away and beyond what all tokens attend to." : "";
  go({ layer: data.layer ?? found.layer, head: data.head ?? (data.layer !== null && data.layer !== found.layer ? 0 : found.head) });
};

const moves = {
  ArrowLeft: () => step(-1), ArrowRight: () => step(1),
  ArrowUp: () => go({ layer: state.layer - 1 }), ArrowDown: () => go({ layer: state.layer + 1 }),
  m: () => go({ map: (state.map + 1) % data.maps.length }),
  j: () => chooseQuery(view.at[0].indexOf(state.token) + 1), k: () => chooseQuery(Math.max(0, view.at[0].indexOf(state.token) - 1)),
  Escape: () => chooseQuery(-1),
};
document.addEventListener("keydown", (event) => {
  const inControl = ["SELECT", "SUMMARY", "INPUT"].includes(event.target.tagName);
  if (inControl || event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("map").addEventListener("change", (event) => go({ map: Number(event.target.value) }));
byId("layer").addEventListener("change", (event) => go({ layer: Number(event.target.value) }));
byId("head").addEventListener("change", (event) => go({ head: Number(event.target.value) }));
byId("order").addEventListener("change", (event) => { state.order = event.target.value; fillGrid(); show(); });
byId("special").addEventListener("change", (event) => go({ hidesSpecial: event.target.checked }));
const redraw = () => {
  makePalette();
  paint(byId("ramp"), 128, 1, (i) => (i / 127) ** 2);
  fillGrid();
  show();
};
dark.addEventListener("change", redraw);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(show, 100); });

byId("model").textContent = data.model;
byId("text").textContent = data.text;
document.title = `Attention: ${data.model}`;
fill(byId("map"), data.maps.map((map, i) => [String(i), map.name]), "0");
fill(byId("order"), Object.entries(kOrders), "layer");
byId("map-picker").hidden = byId("map-keys").hidden = data.maps.length < 2;
open();
redraw();
