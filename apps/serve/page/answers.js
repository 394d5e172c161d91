// ---- The distribution as bars.
const kFew = 10, kMany = 60;

// `most`: the share with the longest bar, which leaves space for the numbers.
const bar = (answer, i, share, before, { pick, most }) => {
  const has = before !== undefined;
  const row = element(pick ? "button" : "div", pick ? { type: "button", title: `append ${visible(answer.names[i])}` } : {});
  const width = (of) => `calc(${(of / most).toFixed(4)} * (100% - ${has ? 9.4 : 4.6}rem))`;
  const fill = element("span", { className: "fill" });
  fill.style.width = width(share);
  row.append(fill);
  if (has) {
    const ghost = element("span", { className: "ghost" });
    ghost.style.width = width(before);
    row.append(ghost);
  }
  const number = answer.kind === "token" ? element("small", { textContent: ` ${answer.ids[i]}` }) : "";
  row.append(element("span", { className: "name" }, visible(answer.names[i]), number));
  row.append(element("span", { className: "value", textContent: has ? `${percent(before)} → ${percent(share)}` : percent(share) }));
  row.classList.toggle("dropped", share === 0);
  if (pick) row.addEventListener("click", () => appendToken(answer.ids[i]));
  return element("li", {}, row);
};

const fillBars = (host, answer, pick) => {
  const now = distribution(answer), plain = answer.plain && distribution(answer.plain);
  const shares = answer.logits.map(now.of), before = plain ? answer.plain.logits.map(plain.of) : [];
  const order = shares.map((_, i) => i).sort((a, b) => Math.max(shares[b], before[b] ?? 0) - Math.max(shares[a], before[a] ?? 0)
    || answer.logits[b] - answer.logits[a]);
  const shown = order.slice(0, state.many ? kMany : kFew);
  const most = Math.max(1e-9, ...shown.map((i) => Math.max(shares[i], before[i] ?? 0)));
  const rows = shown.map((i) => bar(answer, i, shares[i], before[i], { pick, most }));
  const rest = Math.max(0, 1 - shown.reduce((sum, i) => sum + shares[i], 0)), others = answer.count - shown.length;
  if (others > 0) {
    const note = element("div", {}, element("span", { className: "name", textContent: `${others} others, ${now.kept} of ${answer.count} kept` }),
      element("span", { className: "value", textContent: percent(rest) }));
    rows.push(element("li", {}, note));
  }
  host.replaceChildren(...rows);
};

const titleOf = (seen) => {
  const { kind } = seen.answer ?? {};
  if (kind === "label") return "Label";
  if (kind === "span") return "Answer";
  if (seen.shape.kind === "encoder") return `Token at position ${seen.position}`;
  const last = (seen.written ?? seen.tokens).length - 1;
  return seen.position === last ? "Next token" : `Token after position ${seen.position}`;
};

const renderAnswer = () => {
  const { answer } = state.seen, list = byId("bars");
  byId("answer-title").textContent = answer ? titleOf(state.seen) : "Answer";
  byId("run").hidden = byId("undo").hidden = !grows();
  byId("run").textContent = state.running ? "Stop" : "Run";
  byId("undo").disabled = state.append.length === 0;
  byId("more").hidden = !answer || answer.count <= kFew;
  byId("sliders").hidden = !answer;
  byId("moved").hidden = answer?.divergence === undefined;
  if (!answer) {
    list.replaceChildren(element("li", { textContent: "This model's head has no distribution over answers." }));
  } else {
    byId("moved").textContent = `Before → after what is switched off or patched: the distribution moved by ${answer.divergence?.toPrecision(3)} bits.`;
    const last = answerTokens().length - 1;
    fillBars(list, answer, Boolean(grows() && answer.kind === "token" && state.seen.position === last));
  }
  byId("beside").hidden = byId("this-title").hidden = !state.beside?.answer;
  if (!state.beside?.answer) return;
  byId("this-title").textContent = state.model;
  byId("beside-title").textContent = state.other;
  fillBars(byId("other-bars"), state.beside.answer, false);
};

const makeSliders = () => {
  for (const { name, label, min, max, step, value, text } of kSliders) {
    const output = element("output", { textContent: text(value) });
    const input = element("input", { type: "range", id: name, min, max, step, "aria-label": label });
    input.value = value;
    input.addEventListener("input", () => {
      choices[name] = Number(input.value);
      output.textContent = text(choices[name]);
      if (state.seen) renderAnswer();
    });
    byId("sliders").append(element("label", {}, output, `${label} `, input));
  }
};

// ---- One token after another.
const appendToken = (id) => {
  state.append.push(id);
  state.position = null;
  return look();
};
const kMostRun = 60;
const run = async () => {
  state.running = !state.running;
  for (let count = 0; state.running && count < kMostRun && state.seen?.answer; ++count) {
    renderAnswer();
    await appendToken(drawn(state.seen.answer));
  }
  state.running = false;
  if (state.seen) renderAnswer();
};
