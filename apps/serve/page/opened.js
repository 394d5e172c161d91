// ---- An opened block: its heads, its logit lens, the residual stream, the rollout.
const readout = (text) => { byId("readout").textContent = text; };
const weightText = (map, weight, query, key) =>
  `${query} ${map.queries[query]} → ${key} ${map.keys[key]}: ${weight(query, key).toFixed(3)}`;
let shownMap = null, shownHead = null, shownWeight = null;
const hoverToken = (token) => {
  if (!token || !shownMap) return readout("");
  const { side, index } = token, others = side === 0 ? shownMap.keys : shownMap.queries;
  const weight = (i) => (side === 0 ? shownWeight(index, i) : shownWeight(i, index));
  const best = others.map((_, i) => i).sort((a, b) => weight(b) - weight(a)).slice(0, 3);
  const name = (side === 0 ? shownMap.queries : shownMap.keys)[index];
  readout(`${index} ${name} ${side === 0 ? "attends to" : "is attended by"} ` + best.map((i) => `${others[i]} ${weight(i).toFixed(3)}`).join(", "));
};
const lines = makeLines(byId("lines"), { onHover: hoverToken });
byId("lines").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !shownMap) return;
  event.preventDefault();
  const at = lines.chosen?.side === 0 ? lines.chosen.index + by : 0;
  lines.choose(Math.max(0, Math.min(shownMap.queries.length - 1, at)));
});
const onCell = (cell) => readout(cell && shownMap ? weightText(shownMap, shownWeight, cell.query, cell.key) : "");
// A cell of a head is a query and a key of its steps.
const pickCell = (cell) => {
  if (!cell || state.head < 0) return;
  chooseQuery(cell.query);
  state.key = cell.key;
};
const heat = makeHeat(byId("heat"), { onHover: onCell, onPick: pickCell, most: 560 });
const rollout = makeHeat(byId("rollout"), { most: 560, across: "token that arrives →", down: "← state it is in" });

const mapOf = (kind) => {
  const map = state.seen.attention.maps.find((each) => each.kind === kind) ?? state.seen.attention.maps[0];
  map.values ??= bytesOf(map.weights);
  const own = labels(stackTokens());
  return { ...map, queries: own, keys: map.kind === "cross" ? labels(state.seen.tokens) : own };
};

// Cross-attention is shown only where the opened stack has it.
const crosses = () => state.map === "cross" && Boolean(shape()?.cross);
const headSite = (head) => `${crosses() ? "cross_heads" : "heads"} ${state.layer}.${head}`;
const chooseHead = (head) => {
  state.head = head;
  if (state.seen) renderOpened(false);
  return head < 0 ? null : look();
};

// As in bertviz's head view: lines of several heads, each in its colour.
const colourOf = (head) => `hsl(${Math.round((head * 137.5) % 360)}, 70%, ${dark.matches ? 65 : 40}%)`;
const colourHead = (head) => {
  if (!state.coloured.delete(head)) state.coloured.add(head);
  renderHead();
};
const showColours = (map) => {
  byId("coloured").setAttribute("aria-pressed", String(state.coloured !== null));
  for (const button of byId("heads").querySelectorAll("[data-head]")) {
    const head = Number(button.dataset.head), on = state.coloured?.has(head);
    button.setAttribute("aria-pressed", String(on ?? head === state.head));
    button.style.border = on ? `4px solid ${colourOf(head)}` : "";
  }
  return state.coloured && [...state.coloured].filter((head) => head < map.heads).sort((a, b) => a - b).map((head) => ({ weight: headOf(map, head), colour: colourOf(head) }));
};

// What a head looks at most: "previous 0.83".
const looksAt = (map, head) => {
  if (map.kind === "cross") return "";
  const { entropy, ...shares } = patternsOf(map, head);
  const [name, share] = Object.entries(shares).reduce((best, each) => (each[1] > best[1] ? each : best), ["", 0.3]);
  return name && `${name} ${share.toFixed(2)}`;
};
const headCell = (map, head) => {
  const site = headSite(head), weight = headOf(map, head);
  const canvas = element("canvas");
  paint(canvas, map.keys.length, map.queries.length, (i) => weight(Math.floor(i / map.keys.length), i % map.keys.length));
  const button = element("button", { type: "button", "aria-pressed": String(state.head === head), "aria-label": `head ${head}` }, canvas);
  button.dataset.head = head;
  button.addEventListener("click", () => clicked(site) || (state.coloured ? colourHead(head) : chooseHead(state.head === head ? -1 : head)));
  const cell = element("div", { className: "head" }, button, switchOf(site, String(head), "attention", `head ${head} of block ${state.layer}`),
    element("small", { textContent: looksAt(map, head) }));
  cell.classList.toggle("off", state.off.has(site));
  return cell;
};

const patternText = (map) => {
  const { entropy, ...shares } = patternsOf(map, state.head);
  const parts = Object.entries(shares).filter(([, share]) => share !== null).map(([name, share]) => `${name} ${share.toFixed(2)}`);
  return `${state.head < 0 ? "Mean of all heads" : `Head ${state.head}`}: entropy ${entropy.toFixed(2)} bits; weight on ${parts.join(", ")}`;
};

const renderHeads = () => {
  const map = mapOf(state.map), focused = document.activeElement?.dataset ?? {};
  state.head = Math.min(state.head, map.heads - 1);
  shownMap = map;
  byId("map-label").hidden = state.seen.attention.maps.length < 2;
  byId("map").value = map.kind;
  byId("heads").style.maxWidth = `${9.4 * map.heads}rem`;
  byId("heads").replaceChildren(...Array.from({ length: map.heads }, (_, head) => headCell(map, head)));
  const focus = focused.site ? `[data-site="${focused.site}"]` : focused.head ? `[data-head="${focused.head}"]` : null;
  if (focus) byId("heads").querySelector(focus)?.focus();
};
// The chosen head among those that are drawn.
const renderHead = () => {
  const map = shownMap;
  shownHead = state.head;
  shownWeight = headOf(map, state.head);
  byId("mean").setAttribute("aria-pressed", String(state.head < 0));
  const says = byId("pattern").textContent = patternText(map);
  const view = { queries: map.queries, keys: map.keys, weight: shownWeight };
  lines.show({ ...view, heads: showColours(map) });
  heat.show(view);
  for (const id of ["lines", "heat"]) byId(id).setAttribute("aria-label", `${says}; ${map.queries.length} by ${map.keys.length} tokens`);
};

const renderLens = () => {
  const row = state.seen.lens?.[state.layer + 1], ofHead = !isPair() || shape().stack === "decoder";
  byId("lens").hidden = !row || !ofHead;
  byId("lens-note").textContent = row && ofHead ? `Entropy ${row.entropy.toFixed(2)} bits, ${row.divergence.toFixed(2)} bits from the last block's answer.`
    : "This model's head does not apply to a block's state.";
  byId("lens").tBodies[0].replaceChildren(...(row?.answers ?? []).map(({ name, probability }) =>
    element("tr", {}, element("td", { textContent: visible(name) }), element("td", { textContent: percent(probability) }))));
};

const renderOpened = (anew = true) => {
  const open = state.layer !== null && state.seen.attention;
  byId("inside").hidden = !open;
  byId("opened-hint").hidden = open;
  byId("opened-title").textContent = open ? `Block ${state.layer}` : "Open a block";
  if (!open) return;
  const other = anew || mapOf(state.map).kind !== shownMap?.kind;
  if (other) renderHeads();
  if (other || state.head !== shownHead) renderHead();
  renderSteps();
  renderAllHeads();
  if (!anew) return;
  renderLens();
  renderInside();
  renderNorms();
  const tokens = labels(stackTokens()), values = (state.seen.attention.levels ??= bytesOf(state.seen.attention.rollout));
  rollout.show({ queries: tokens, keys: tokens, weight: (query, key) => values[query * tokens.length + key] / 255 });
  reachScrolled();
  byId("rollout").setAttribute("aria-label", `Attention rollout up to block ${state.layer}, ${tokens.length} tokens`);
};
