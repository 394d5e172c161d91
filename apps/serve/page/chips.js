// ---- What is switched off or patched: chips beside the answer, each of which can be taken away.
const kKinds = { layers: "block", sublayers: "sublayer", heads: "head", cross_heads: "cross-attention head" };
const siteText = (site) => {
  const [kind, where] = site.split(" "), [layer, part] = where.split(".");
  if (kind === "layers") return `block ${layer}`;
  return kind === "sublayers" ? `${part.replace("_", "-")} of block ${layer}` : `${kKinds[kind]} ${part} of block ${layer}`;
};
const patchText = () => {
  const { part, layer, head, position } = state.patch;
  const what = part === "head" ? `head ${head}` : part === "cross_head" ? `cross-attention head ${head}` : kParts[part];
  return `${what} of block ${layer}, ${position === "" ? "all tokens" : `token ${position}`}`;
};
const chip = (says, text, takeAway) => {
  const made = element("button", { type: "button", className: "chip", "aria-label": `${says} ${text}: take it away` },
    element("small", { textContent: says }), ` ${text} `, element("span", { "aria-hidden": "true", textContent: "✕" }));
  made.addEventListener("click", async () => {
    takeAway();
    await look();
    if (document.activeElement === document.body) byId("chips").querySelector("button")?.focus();  // the chip is gone
  });
  return made;
};
const renderChips = () => {
  const chips = [...state.off].map((site) => chip("off", siteText(site), () => state.off.delete(site)));
  if (patchFits()) chips.push(chip("patched", patchText(), dropPatch));
  if (chips.length > 1) {
    const all = element("button", { type: "button", id: "all-on", textContent: "Take all away" });
    all.addEventListener("click", () => { state.off.clear(); dropPatch(); look(); });
    chips.push(all);
  }
  byId("chips").replaceChildren(...chips);
  byId("chips").hidden = chips.length === 0;
};
