// ---- The answer as bars: a distribution; or several labels, each with a probability of its own, the sigmoid; or scores.
const kFew = 10, kMany = 60;
const isDistribution = ({ kind }) => kind !== "labels" && kind !== "score";
const sigmoid = (logit) => 1 / (1 + Math.exp(-logit));
// {of(logit): what its bar shows, kept: how many answers the sliders leave}
const measureOf = ({ kind, count }, part) => (isDistribution({ kind }) ? distribution(part) : { of: kind === "labels" ? sigmoid : (logit) => logit, kept: count });
const numberText = ({ kind }, number) => (kind === "score" ? number.toFixed(3).replace("-", "−") : percent(number));
const unitOf = ({ kind }) => (kind === "score" ? "score" : "probability");

// A row: name, bar, number. The track goes from `least` to `most`, and a bar begins at 0.
const bar = (answer, i, share, before, { pick, least, most }) => {
  const has = before !== undefined, name = visible(answer.names[i]), track = element("span", { className: "track" });
  const row = element(pick ? "button" : "div", pick ? { type: "button", title: `append ${name}` } : { title: name });
  const part = (className, side, of) => {
    const made = element("span", { className });
    made.style[side] = `${((100 * of) / (most - least)).toFixed(2)}%`;
    track.append(made);
    return made;
  };
  part(share < 0 ? "fill below" : "fill", "width", Math.abs(share)).style.left = `${(100 * (Math.min(0, share) - least)) / (most - least)}%`;
  if (least < 0) part("zero", "left", -least);
  if (has) part("ghost", "left", before - least);
  const number = answer.kind === "token" ? element("small", { textContent: ` ${answer.ids[i]}` }) : "";
  row.append(element("span", { className: "name" }, name, number), track,
    element("span", { className: "value", textContent: (has ? [before, share] : [share]).map((each) => numberText(answer, each)).join(" → ") }));
  row.classList.toggle("dropped", share === 0 && isDistribution(answer));
  if (pick) row.addEventListener("click", () => appendToken(answer.ids[i]));
  return element("li", {}, row);
};
const othersRow = (count, kept, answer, share) => {
  const text = `${count} others` + (kept < answer.count ? `; the sliders below keep ${kept} of ${answer.count}` : "");
  return element("li", {}, element("div", { className: "others" }, element("span", { className: "name", textContent: text }),
    element("span", { className: "value", textContent: isDistribution(answer) ? percent(share) : "" })));
};

// An answer's shares with and without what is off or patched, and which are shown.
const shownOf = (answer) => {
  const now = measureOf(answer, answer), plain = answer.plain && measureOf(answer, answer.plain);
  const shares = answer.logits.map(now.of), before = plain ? answer.plain.logits.map(plain.of) : [];
  const order = shares.map((_, i) => i).sort((a, b) => Math.max(shares[b], before[b] ?? 0) - Math.max(shares[a], before[a] ?? 0)
    || answer.logits[b] - answer.logits[a]);
  const shown = order.slice(0, state.many ? kMany : kFew);
  const numbers = shown.flatMap((i) => [shares[i], before[i] ?? 0]);
  return { answer, kept: now.kept, shares, before, shown, least: Math.min(0, ...numbers), most: Math.max(0, ...numbers) };
};
const fillBars = (host, { answer, kept, shares, before, shown }, { pick, least, most }) => {
  const scale = { pick, least, most: Math.max(most, least + 1e-9) };
  const rows = shown.map((i) => bar(answer, i, shares[i], before[i], scale)), list = host.parentElement;
  const rest = Math.max(0, 1 - shown.reduce((sum, i) => sum + shares[i], 0)), others = answer.count - shown.length;
  if (others > 0) rows.push(othersRow(others, kept, answer, rest));
  host.replaceChildren(...rows);
  list.classList.toggle("both", before.length > 0);
  list.classList.toggle("phrases", answer.kind !== "token");
  list.querySelector(".least").textContent = least < 0 ? numberText(answer, least) : "0";
  list.querySelector(".unit").textContent = unitOf(answer);
  list.querySelector(".most").textContent = numberText(answer, most);
};

const titleOf = (seen) => {
  const { kind } = seen.answer ?? {};
  if (kind === "label" || kind === "labels") return kind === "label" ? "Label" : "Labels";
  if (kind === "score") return seen.answer.count === 1 ? "Score" : "Scores";
  if (kind === "span") return "Answer";
  if (seen.shape.kind === "encoder") return `Token at position ${seen.position}`;
  const last = (seen.written ?? seen.tokens).length - 1;
  return seen.position === last ? "Next token" : `Token after position ${seen.position}`;
};

// Two models' bars have one scale.
const renderLists = (answer) => {
  const view = shownOf(answer), other = state.beside?.answer && shownOf(state.beside.answer);
  const most = Math.max(view.most, other?.most ?? 0), least = Math.min(view.least, other?.least ?? 0), last = answerTokens().length - 1;
  fillBars(byId("bars"), view, { pick: Boolean(grows() && answer.kind === "token" && state.seen.position === last), least, most });
  byId("beside").hidden = byId("this-title").hidden = !other;
  if (!other) return;
  byId("this-title").textContent = `${state.model}: ${unitOf(answer)}`;
  const elsewhere = state.position !== null && !haveSameTokens(about(state.other), about(state.model));
  byId("beside-title").textContent = `${state.other}: ${unitOf(state.beside.answer)}${elsewhere ? `, ${titleOf(state.beside).toLowerCase()}` : ""}`;
  fillBars(byId("other-bars"), other, { pick: false, least, most });
};
// What became of the whole answer.
const movedText = ({ kind, count, logits, plain, divergence }) => {
  if (kind === "labels") return "Each label has a probability of its own, the sigmoid of its logit; they need not sum to 1.";
  if (kind !== "score") return plain ? `The distribution moved by ${divergence?.toPrecision(3)} bits.` : "";
  // A single number may be a rating or a yes or no, which only its training tells.
  return count === 1 ? `As a probability (sigmoid of the score): ${(plain ? [plain.logits[0], logits[0]] : logits).map((each) => sigmoid(each).toFixed(3)).join(" → ")}` : "";
};
const renderAnswer = () => {
  const { answer } = state.seen, moved = answer ? movedText(answer) : "";
  byId("answer-title").textContent = answer ? titleOf(state.seen) : "Answer";
  byId("run").hidden = byId("undo").hidden = byId("seed-label").hidden = !grows();
  byId("run").textContent = state.running ? "Stop" : "Run";
  byId("undo").disabled = state.append.length === 0;
  byId("more").hidden = !answer || answer.count <= kFew;
  byId("axis").hidden = !answer;
  byId("sliders").hidden = byId("sampling").hidden = !answer || !isDistribution(answer);
  byId("bars-legend").hidden = !answer?.plain;
  byId("moved").hidden = moved === "";
  byId("moved").textContent = moved;
  if (answer) return renderLists(answer);
  byId("beside").hidden = byId("this-title").hidden = true;
  byId("bars").replaceChildren(element("li", { textContent: "This model's head gives no answer that can be shown: it flags each token, or there is none." }));
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
