// ---- Switched-off parts and patches.
const kParts = { residual: "residual stream", attention: "attention's output", cross_attention: "cross-attention's output", feed_forward: "feed-forward's output", head: "a head's output",
  cross_head: "a cross-attention head's output" };

// ---- A click on the drawing looks inside a part, switches it off, or patches it.
const kClicks = { look: "", off: "Click a head, a sublayer or a block to switch it off, and again to switch it on.",
  patch: "Click a head, a sublayer, a block or one of its tokens: its state is copied from the other text below." };
const patchAt = (part, layer, { head = 0, position = "" } = {}) => {
  Object.assign(state.patch, { part, layer, head, position });
  if (state.patch.text === "") byId("patch-text").focus();
  look();
};
const onDrawing = { off: (site) => toggle(site, state.off.has(site)), patch: (site) => {
  const [kind, where] = site.split(" "), [layer, part] = where.split(".");
  if (kind === "layers") return patchAt("residual", Number(layer));
  if (kind === "sublayers") return patchAt(part, Number(layer));
  return patchAt(kind === "heads" ? "head" : "cross_head", Number(layer), { head: Number(part) });
} };
// True if the click is no look inside, and was done here.
const clicked = (site) => {
  onDrawing[state.click]?.(site);
  return state.click !== "look";
};
const renderClicks = () => {
  for (const button of byId("clicks").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.click === state.click));
  byId("click-says").textContent = kClicks[state.click];
  byId("click-says").hidden = state.click === "look";
};

// Options [value, text], replaced where they differ.
const fill = (select, options, value) => {
  const same = select.options.length === options.length && options.every(([key, text], i) => select.options[i].value === key && select.options[i].text === text);
  if (!same) select.replaceChildren(...options.map(([key, text]) => element("option", { value: key, textContent: text })));
  select.value = value;
};
const renderTouch = () => {
  byId("with").value = state.with;
  const numbers = (count) => Array.from({ length: count }, (_, i) => [String(i), String(i)]);
  const parts = Object.entries(kParts).filter(([part]) => !part.startsWith("cross") || shape().cross);
  state.patch.layer = Math.min(state.patch.layer, shape().layers - 1);
  state.patch.head = Math.min(state.patch.head, shape().heads - 1);
  if (Number(state.patch.position) >= stackTokens().length) state.patch.position = "";
  fill(byId("patch-part"), parts, state.patch.part);
  fill(byId("patch-layer"), numbers(shape().layers), String(state.patch.layer));
  fill(byId("patch-head"), numbers(shape().heads), String(state.patch.head));
  fill(byId("patch-position"), [["", "all tokens"], ...labels(stackTokens()).map((token, i) => [String(i), `${i} ${token}`])], state.patch.position);
  byId("patch-head-label").hidden = !state.patch.part.endsWith("head");
};

const watchTouch = () => {
  byId("clicks").addEventListener("click", ({ target }) => {
    if (!target.dataset.click) return;
    state.click = target.dataset.click;
    renderClicks();
    if (state.seen) renderBlocks();
  });
  renderClicks();
  byId("with").addEventListener("change", (event) => { state.with = event.target.value; look(); });
  byId("patch-text").addEventListener("input", (event) => { state.patch.text = event.target.value; look(); });
  for (const name of ["part", "layer", "head", "position"]) {
    byId(`patch-${name}`).addEventListener("change", ({ target }) => {
      state.patch[name] = ["layer", "head"].includes(name) ? Number(target.value) : target.value;
      look();
    });
  }
};
