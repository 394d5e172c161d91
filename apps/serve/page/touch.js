// ---- Switched-off parts and patches.
const kParts = { residual: "residual stream", attention: "attention's output", cross_attention: "cross-attention's output", feed_forward: "feed-forward's output", head: "a head's output" };

const renderTouch = () => {
  byId("with").value = state.with;
  const fill = (select, options, value) => {
    select.replaceChildren(...options.map(([key, text]) => element("option", { value: key, textContent: text })));
    select.value = value;
  };
  const numbers = (count) => Array.from({ length: count }, (_, i) => [String(i), String(i)]);
  const parts = Object.entries(kParts).filter(([part]) => part !== "cross_attention" || shape().cross);
  state.patch.layer = Math.min(state.patch.layer, shape().layers - 1);
  state.patch.head = Math.min(state.patch.head, shape().heads - 1);
  if (Number(state.patch.position) >= stackTokens().length) state.patch.position = "";
  fill(byId("patch-part"), parts, state.patch.part);
  fill(byId("patch-layer"), numbers(shape().layers), String(state.patch.layer));
  fill(byId("patch-head"), numbers(shape().heads), String(state.patch.head));
  fill(byId("patch-position"), [["", "all tokens"], ...labels(stackTokens()).map((token, i) => [String(i), `${i} ${token}`])], state.patch.position);
  byId("patch-head-label").hidden = state.patch.part !== "head";
};

const watchTouch = () => {
  byId("with").addEventListener("change", (event) => { state.with = event.target.value; look(); });
  byId("patch-text").addEventListener("input", (event) => { state.patch.text = event.target.value; look(); });
  for (const name of ["part", "layer", "head", "position"]) {
    byId(`patch-${name}`).addEventListener("change", ({ target }) => {
      state.patch[name] = ["layer", "head"].includes(name) ? Number(target.value) : target.value;
      look();
    });
  }
};
