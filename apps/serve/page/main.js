// ---- The page.
const render = (anew = true) => {
  const { family, head, parameters, context } = about(state.model);
  byId("about").textContent = `${state.model}: ${family}, ${head}, ${shape().layers} blocks of ${shape().heads} heads, width ${shape().width}` +
    (parameters ? `, ${shortCount(parameters)} parameters` : "") + (context ? `, context of ${context} tokens` : "");
  if (anew) renderText();
  renderAnswer();
  renderChips();
  renderTouch();
  if (anew) renderBlocks();
  renderOpened(anew);
  renderGuide();
  writeLink();
};

// A model of another kind starts with a new text; one of the same kind (another step of a run) keeps everything.
const chooseModel = (name) => {
  const before = about(state.model), next = about(name);
  if (before && !haveSameTokens(before, next)) {
    Object.assign(state, grownText(), { append: [], position: null, query: null, key: null });
    dropPatch();
  }
  state.model = name;
  state.changed = "model";
  byId("slid").hidden = true;
  byId("model").value = name;
  byId("slide").value = state.models.indexOf(next);
  if (!before || before.head !== next.head || before.family !== next.family) {
    Object.assign(state, { append: [], position: null, layer: 0, stack: null, head: -1, query: null, key: null, seen: null, target: "" });
    state.off.clear();
    dropPatch();
    beginText();
  }
  return look();
};
const chooseOther = (name) => {
  state.other = name === "" ? null : name;
  return look();
};

// Of the steps of a run, the newest.
const firstModel = () => state.models.at(state.models.every(({ id }) => /^step-\d+$/.test(id)) ? -1 : 0).id;
// Goes through the models that follow, or through all from the last one on, until the end or until the button is pressed again.
let plays = 0, playing = false;
const play = async () => {
  const own = ++plays, at = Number(byId("slide").value);
  playing = !playing;
  byId("play").textContent = playing ? "Stop" : "Play";
  for (let i = at + 1 < state.models.length ? at + 1 : 0; own === plays && playing && i < state.models.length; ++i)
    await Promise.all([chooseModel(state.models[i].id), new Promise((done) => setTimeout(done, 300))]);
  if (own !== plays || !playing) return;
  playing = false;
  byId("play").textContent = "Play";
};

const begin = async () => {
  try {
    const { data, run: trained } = await listModels();
    state.models = data;
    if (trained && byId("run-part").hidden) watchRun(trained);
  } catch (error) {
    return say(error.message, true);
  }
  const options = state.models.map(({ id }) => element("option", { value: id, textContent: id }));
  byId("model").replaceChildren(...options.map((option) => option.cloneNode(true)));
  byId("other").replaceChildren(element("option", { value: "", textContent: "no other model" }), ...options);
  byId("slide").max = state.models.length - 1;
  byId("slide-label").hidden = byId("play").hidden = byId("other-label").hidden = state.models.length < 2;
  const [first, ...others] = state.models;  // frames of one text and one kind of answer
  byId("animate").hidden = others.length === 0 || others.some((other) => other.head !== first.head || other.family !== first.family || !haveSameTokens(first, other));
  if (!await openLink()) await chooseModel(firstModel());
};
addEventListener("hashchange", () => { if (location.hash !== written) openLink(); });

// Arrow keys move among the buttons of a group.
const walk = (host, selector, back, forward) => host.addEventListener("keydown", (event) => {
  const buttons = [...host.querySelectorAll(selector)], at = buttons.indexOf(event.target);
  const to = event.key === back ? at - 1 : event.key === forward ? at + 1 : -1;
  if (at < 0 || to < 0 || to >= buttons.length) return;
  event.preventDefault();
  buttons[to].focus();
});

// A column that is higher than the window stays with its end in sight.
const stick = () => {
  for (const id of ["left", "middle"]) byId(id).style.top = `${Math.min(0, innerHeight - byId(id).offsetHeight)}px`;
};
const columns = new ResizeObserver(stick);
for (const id of ["left", "middle"]) columns.observe(byId(id));

makeSliders();
makeMenus();
drawRamps();
watchTexts();
watchTouch();
watchSteps();
watchGuide();
walk(byId("blocks"), ".open", "ArrowDown", "ArrowUp");
walk(byId("blocks"), ".flow button", "ArrowLeft", "ArrowRight");
walk(byId("heads"), "button", "ArrowLeft", "ArrowRight");
byId("model").addEventListener("change", (event) => chooseModel(event.target.value));
byId("other").addEventListener("change", (event) => chooseOther(event.target.value));
byId("slide").addEventListener("input", (event) => chooseModel(state.models[Number(event.target.value)].id));
byId("play").addEventListener("click", play);
byId("key").addEventListener("change", begin);
byId("run").addEventListener("click", run);
byId("copy").addEventListener("click", copyLink);
byId("undo").addEventListener("click", () => { state.append.pop(); byId("slid").hidden = true; look(); });
byId("more").addEventListener("click", ({ target }) => {
  state.many = !state.many;
  target.setAttribute("aria-pressed", String(state.many));
  renderAnswer();
});
byId("stack").addEventListener("change", (event) => {
  state.stack = event.target.value;
  state.layer = 0;
  state.off.clear();
  look();
});
byId("map").addEventListener("change", (event) => { state.map = event.target.value; chooseHead(state.head); });
byId("mean").addEventListener("click", () => chooseHead(-1));
byId("coloured").addEventListener("click", () => {
  state.coloured = state.coloured ? null : new Set(Array.from({ length: shownMap.heads }, (_, head) => head));
  renderHead();
});
byId("all-heads-ask").addEventListener("click", compareHeads);
byId("animate").addEventListener("click", saveAnimation);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.layer !== null) openLayer(state.layer);
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && grows() && !byId("run").disabled) run();
});
dark.addEventListener("change", () => {
  makePalette();
  drawRamps();
  renderRun();
  if (!state.seen) return;
  render();
  setStale(document.body.classList.contains("stale"));
});
let resizing = 0;
addEventListener("resize", () => {
  stick();
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    renderRun();
    if (state.seen) renderOpened();
  }, 100);
});
begin();
