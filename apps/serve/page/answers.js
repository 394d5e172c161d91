// ---- The distribution as bars.
const kFew = 10, kMany = 60;

// A row: name, bar, number. `most`: the share whose bar is as long as its track.
const bar = (answer, i, share, before, { pick, most }) => {
  const has = before !== undefined, name = visible(answer.names[i]), track = element("span", { className: "track" });
  const row = element(pick ? "button" : "div", pick ? { type: "button", title: `append ${name}` } : { title: name });
  const part = (className, side, of) => {
    const made = element("span", { className });
    made.style[side] = `${((100 * of) / most).toFixed(2)}%`;
    track.append(made);
  };
  part("fill", "width", share);
  if (has) part("ghost", "left", before);
  const number = answer.kind === "token" ? element("small", { textContent: ` ${answer.ids[i]}` }) : "";
  row.append(element("span", { className: "name" }, name, number), track,
    element("span", { className: "value", textContent: has ? `${percent(before)} → ${percent(share)}` : percent(share) }));
  row.classList.toggle("dropped", share === 0);
  if (pick) row.addEventListener("click", () => appendToken(answer.ids[i]));
  return element("li", {}, row);
};
const othersRow = (count, kept, answer, share) => {
  const text = `${count} others` + (kept < answer.count ? `; the sliders below keep ${kept} of ${answer.count}` : "");
  return element("li", {}, element("div", { className: "others" }, element("span", { className: "name", textContent: text }),
    element("span", { className: "value", textContent: percent(share) })));
};

// An answer's shares with and without what is off or patched, and which are shown.
const shownOf = (answer) => {
  const now = distribution(answer), plain = answer.plain && distribution(answer.plain);
  const shares = answer.logits.map(now.of), before = plain ? answer.plain.logits.map(plain.of) : [];
  const order = shares.map((_, i) => i).sort((a, b) => Math.max(shares[b], before[b] ?? 0) - Math.max(shares[a], before[a] ?? 0)
    || answer.logits[b] - answer.logits[a]);
  const shown = order.slice(0, state.many ? kMany : kFew);
  const most = Math.max(1e-9, ...shown.map((i) => Math.max(shares[i], before[i] ?? 0)));
  return { answer, kept: now.kept, shares, before, shown, most };
};
const fillBars = (host, { answer, kept, shares, before, shown }, { pick, most }) => {
  const rows = shown.map((i) => bar(answer, i, shares[i], before[i], { pick, most })), list = host.parentElement;
  const rest = Math.max(0, 1 - shown.reduce((sum, i) => sum + shares[i], 0)), others = answer.count - shown.length;
  if (others > 0) rows.push(othersRow(others, kept, answer, rest));
  host.replaceChildren(...rows);
  list.classList.toggle("both", before.length > 0);
  list.classList.toggle("phrases", answer.kind !== "token");
  list.querySelector(".most").textContent = percent(most);
};

const titleOf = (seen) => {
  const { kind } = seen.answer ?? {};
  if (kind === "label") return "Label";
  if (kind === "span") return "Answer";
  if (seen.shape.kind === "encoder") return `Token at position ${seen.position}`;
  const last = (seen.written ?? seen.tokens).length - 1;
  return seen.position === last ? "Next token" : `Token after position ${seen.position}`;
};

// Two models' bars have one scale.
const renderLists = (answer) => {
  const view = shownOf(answer), other = state.beside?.answer && shownOf(state.beside.answer);
  const most = Math.max(view.most, other?.most ?? 0), last = answerTokens().length - 1;
  fillBars(byId("bars"), view, { pick: Boolean(grows() && answer.kind === "token" && state.seen.position === last), most });
  byId("beside").hidden = byId("this-title").hidden = !other;
  if (!other) return;
  byId("this-title").textContent = `${state.model}: probability`;
  const elsewhere = state.position !== null && !haveSameTokens(about(state.other), about(state.model));
  byId("beside-title").textContent = `${state.other}: probability${elsewhere ? `, ${titleOf(state.beside).toLowerCase()}` : ""}`;
  fillBars(byId("other-bars"), other, { pick: false, most });
};
const renderAnswer = () => {
  const { answer } = state.seen, moved = answer?.divergence;
  byId("answer-title").textContent = answer ? titleOf(state.seen) : "Answer";
  byId("run").hidden = byId("undo").hidden = byId("seed-label").hidden = !grows();
  byId("run").textContent = state.running ? "Stop" : "Run";
  byId("undo").disabled = state.append.length === 0;
  byId("more").hidden = !answer || answer.count <= kFew;
  byId("sliders").hidden = byId("axis").hidden = !answer;
  byId("bars-legend").hidden = byId("moved").hidden = moved === undefined;
  byId("moved").textContent = `The distribution moved by ${moved?.toPrecision(3)} bits.`;
  if (answer) return renderLists(answer);
  byId("beside").hidden = byId("this-title").hidden = true;
  byId("bars").replaceChildren(element("li", { textContent: "This model's head has no distribution over answers." }));
};

const setSlider = (name, value) => {
  const slider = kSliders.find((each) => each.name === name), input = byId(name);
  choices[name] = Math.min(slider.max, Math.max(slider.min, value));
  input.value = choices[name];
  input.previousElementSibling.textContent = slider.text(choices[name]);
};
const makeSliders = () => {
  for (const { name, label, min, max, step, value, text } of kSliders) {
    const output = element("output", { textContent: text(value) });
    const input = element("input", { type: "range", id: name, min, max, step, "aria-label": label });
    input.value = value;
    input.addEventListener("input", () => {
      setSlider(name, Number(input.value));
      if (state.seen) renderAnswer();
      writeLink();
    });
    byId("sliders").append(element("label", {}, `${label} `, output, input));
  }
};
