// ---- A table of all heads of the model by what they attend to (patternsOf in weights.js). The maps of the other blocks come by the
// same request as the opened one's, a block at a time, when the table is asked for.
const kHeadKinds = { previous: "previous", induction: "induction", duplicate: "duplicate", first: "first" };
let allHeads = null;  // {run, rows: [{layer, head, shares}]}
let headsOrder = "block";
// Null until a new model has answered.
const runWithoutPlace = () => state.seen && JSON.stringify({ ...JSON.parse(state.seen.asked.run), layer: null });

const compareHeads = async () => {
  const run = runWithoutPlace(), tokens = labels(stackTokens()), { layers } = shape(), rows = [];
  byId("all-heads-ask").disabled = true;
  try {
    for (let layer = 0; layer < layers; ++layer) {
      say(`Block ${layer + 1} of ${layers}`);
      const { attention } = await ask("/look", { ...JSON.parse(run), layer, head: undefined, query: undefined });
      if (runWithoutPlace() !== run) return;  // another model or text
      const map = attention.maps[0], all = { ...map, values: bytesOf(map.weights), queries: tokens, keys: tokens };
      for (let head = 0; head < map.heads; ++head) rows.push({ layer, head, shares: patternsOf(all, head) });
    }
    allHeads = { run, rows };
    say(`${rows.length} heads`);
  } catch (error) {
    fail(error);
  } finally {
    byId("all-heads-ask").disabled = false;
    renderAllHeads();
  }
};
const openHead = ({ layer, head }) => {
  Object.assign(state, { layer, head, map: "self", query: null, key: null });
  return look();
};
const shareCell = (share) => {
  const cell = element("td", { textContent: share === null ? "–" : share.toFixed(2) });
  if (share !== null) Object.assign(cell.style, { background: rgb(share), color: inkOn(share) });
  return cell;
};
const renderAllHeads = () => {
  if (!state.seen) return;
  const shown = allHeads?.run === runWithoutPlace();
  byId("all-heads-table").hidden = !shown;
  byId("all-heads-ask").hidden = shown;
  if (!shown) return;
  const focused = document.activeElement?.dataset?.order, rows = [...allHeads.rows];
  if (headsOrder !== "block") rows.sort((a, b) => (b.shares[headsOrder] ?? -1) - (a.shares[headsOrder] ?? -1));
  byId("all-heads").tHead.replaceChildren(element("tr", {}, ...Object.entries({ block: "head", ...kHeadKinds }).map(([order, textContent]) => {
    const button = element("button", { type: "button", textContent, title: `sort by ${textContent}` }), sorted = order === headsOrder;
    button.dataset.order = order;
    button.addEventListener("click", () => { headsOrder = order; renderAllHeads(); });
    return element("th", { scope: "col", "aria-sort": !sorted ? "none" : order === "block" ? "ascending" : "descending" }, button);
  })));
  byId("all-heads").tBodies[0].replaceChildren(...rows.map((row) => {
    const name = `${row.layer}.${row.head}`, pressed = state.layer === row.layer && state.head === row.head;
    const button = element("button", { type: "button", textContent: name, "aria-pressed": String(pressed), "aria-label": `open head ${row.head} of block ${row.layer}` });
    button.addEventListener("click", () => openHead(row));
    return element("tr", {}, element("th", { scope: "row" }, button), ...Object.keys(kHeadKinds).map((kind) => shareCell(row.shares[kind])));
  }));
  if (focused) byId("all-heads").querySelector(`[data-order="${focused}"]`)?.focus();
  reachScrolled();
};
