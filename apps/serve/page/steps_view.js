// ---- A head and one of its queries, step by step.
// Numbers as cells, blue above 0 and orange below; `most` has the strongest colour.
const strip = (numbers, most) => {
  const canvas = element("canvas", { className: "strip", role: "img", title: Array.from(numbers, decimals).join(", "), "aria-label": `${numbers.length} numbers` });
  canvas.width = numbers.length;
  canvas.height = 1;
  const context = canvas.getContext("2d"), image = context.createImageData(numbers.length, 1);
  numbers.forEach((number, i) => {
    const [r, g, b] = palette[levelOf(Math.abs(number) / most)];
    image.data.set(number < 0 ? [b, g, r, 255] : [r, g, b, 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
};
const largestOf = (rows) => Math.max(1e-9, ...rows.map((row) => row.reduce((most, each) => Math.max(most, Math.abs(each)), 0)));

// "k_j" with its index below.
const withIndices = (text) => text.split(/_(\w+)/).map((part, i) => (i % 2 === 1 ? element("sub", { textContent: part }) : part));
const numberCell = (number, className = "") => element("td", { className, title: String(number), textContent: decimals(number) });
const barCell = (number, most) => {
  const inner = element("i", { className: number < 0 ? "below" : "" });
  inner.style.width = Number.isFinite(number) ? `${(100 * Math.abs(number)) / most}%` : "0";
  return element("td", { className: "mini" }, inner);
};
const keyCell = (name, i) => {
  const button = element("button", { type: "button", textContent: name, "aria-pressed": String(i === shownKey()) });
  button.dataset.key = i;
  button.addEventListener("click", () => { state.key = i; renderSteps(); writeLink(); });
  return element("th", { scope: "row" }, button);
};

let steps = null;
const shownKey = () => Math.min(state.key ?? steps.shares.indexOf(Math.max(...steps.shares)), steps.shares.length - 1);
const rowsOfKeys = ({ strips, before, after }, names) => {
  const rows = strips === "keys" ? steps.keys : strips === "values" || strips === "output" ? steps.values : null;
  const weighted = strips === "output" ? rows.map((row, i) => row.map((each) => each * steps.shares[i])) : rows;
  const strongest = rows && largestOf(strips === "output" ? [...weighted, steps.output] : rows), most = after && largestOf([after[1].filter(Number.isFinite)]);
  const made = names.map((name, i) => element("tr", {}, keyCell(name, i), ...(before ? [numberCell(before[1][i])] : []),
    ...(after ? [numberCell(after[1][i], "after"), barCell(after[1][i], most)] : []),
    ...(rows ? [element("td", {}, strip(weighted[i], strongest))] : [])));
  if (strips === "output") made.push(element("tr", {}, element("th", { textContent: "sum" }), numberCell(1), element("td", {}, strip(steps.output, strongest))));
  if (after?.[1] === steps.shares) made.push(element("tr", {}, element("th", { textContent: "sum" }), element("td"), numberCell(steps.shares.reduce((a, b) => a + b), "after"), element("td")));
  return made;
};
const tupleOf = (name, numbers) => `${name} = (${Array.from(numbers, decimals).join(", ")})`;
const workedOut = (step, names) => {
  const key = shownKey();
  if (step.strips === "query") return tupleOf("q", steps.query);
  if (step.strips === "keys") return tupleOf(`k of ${names[key]}`, steps.keys[key]);
  if (step.strips === "values") return tupleOf(`v of ${names[key]}`, steps.values[key]);
  return step.sum(key) + (step.strips === "output" ? `. ${tupleOf("Output", steps.output)}` : "");
};

// Scrolls the table alone, not the page.
const showRow = (button) => {
  const box = byId("step-table").parentElement;
  if (button) box.scrollTop = button.offsetTop - box.offsetTop - box.clientHeight / 2;
};
const renderStep = (list, names) => {
  const at = Math.max(0, list.findIndex(({ title }) => title === state.step)), step = list[at], heads = [step.before?.[0], step.after?.[0], step.after && "", step.strips && step.strips !== "query" && "numbers"];
  byId("step-list").replaceChildren(...list.map(({ title }, i) => {
    const button = element("button", { type: "button", textContent: `${i + 1} ${title}`, "aria-pressed": String(i === at) });
    button.addEventListener("click", () => goToStep(title, i));
    return button;
  }));
  byId("step-formula").replaceChildren(...withIndices(step.formula));
  byId("step-says").replaceChildren(...withIndices(step.says));
  byId("step-table").tHead.replaceChildren(element("tr", {}, element("th", { textContent: "key" }),
    ...heads.filter((head) => typeof head === "string").map((textContent) => element(textContent ? "th" : "td", { textContent }))));
  byId("step-table").hidden = step.strips === "query";
  byId("step-table").tBodies[0].replaceChildren(...(step.strips === "query" ? [] : rowsOfKeys(step, names.map((_, i) => tokenText(names, i)))));
  byId("step-query").replaceChildren(...(step.strips === "query" ? [strip(steps.query, largestOf([steps.query]))] : []));
  if (state.key === null) showRow(byId("step-table").querySelector('[aria-pressed="true"]'));
  byId("step-sum").textContent = workedOut(step, names);
  reachScrolled();
  for (const [id, to] of [["step-back", at - 1], ["step-next", at + 1]]) {
    byId(id).disabled = !list[to];
    byId(id).onclick = () => goToStep(list[to].title, to);
  }
};
const goToStep = (title, at) => {
  const focused = byId("step-list").contains(document.activeElement);
  state.step = title;
  renderSteps();
  writeLink();
  if (focused) byId("step-list").children[at].focus();
};

const renderSteps = () => {
  const { asked, attention, position } = state.seen, sent = attention.steps, on = state.head >= 0;
  byId("follow").hidden = on;
  byId("steps").hidden = !on || !sent;
  byId("steps-none").hidden = !on || sent !== null;
  if (!on || !sent) return;
  const waits = asked.head !== state.head || asked.cross !== crosses();
  byId("steps").classList.toggle("waiting", waits);
  if (waits && sent === steps?.sent) return;  // as they are, until the answer is there
  if (sent !== steps?.sent) steps = { ...headSteps(sent), sent };
  const own = labels(stackTokens()), names = asked.cross ? labels(state.seen.tokens) : own, at = asked.query ?? Math.min(position, own.length - 1);
  fill(byId("query"), own.map((_, i) => [String(i), tokenText(own, i)]), at);
  byId("steps-head").textContent = `Head ${asked.head} of block ${attention.layer}` + (state.off.has(headSite(asked.head)) ? ", which is off: its output is not used" : "");
  renderStep(stepsInWords(steps, { names, own: tokenText(own, at), position: at, positions: asked.cross ? "none" : shape().positions, crosses: asked.cross, decoder: shape().stack === "decoder" }), names);
};

const chooseQuery = (query) => {
  state.query = query;
  state.key = null;
  look();
};
const watchSteps = () => {
  byId("follow").addEventListener("click", () => chooseHead(0));
  byId("query").addEventListener("change", ({ target }) => chooseQuery(Number(target.value)));
  walk(byId("step-list"), "button", "ArrowLeft", "ArrowRight");
  walk(byId("step-table"), "button", "ArrowUp", "ArrowDown");
};
