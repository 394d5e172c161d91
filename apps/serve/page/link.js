// ---- The page's state in its address, after the #: who opens the link sees the same.
// [name in the address, read from the state, write into it]. What is empty is left out; what is left out is as at the beginning.
const numberOrNull = (text) => (/^\d+$/.test(text) ? Number(text) : null);
const field = (name, { to = String, from = (text) => text, of = state } = {}) => [name, () => (of[name] === null ? "" : to(of[name])), (text) => { of[name] = from(text); }];
const natural = { from: (text) => Number(numberOrNull(text) ?? 0) };
const kLinked = [
  field("text"), field("pair"), field("target"), field("position", { from: numberOrNull }), field("stack", { from: (text) => text || null }),
  ["layer", () => String(state.layer ?? "none"), (text) => { state.layer = text === "" ? 0 : numberOrNull(text); }], field("map", { from: (text) => text || "self" }), field("head", { from: (text) => numberOrNull(text) ?? -1 }), field("query", { from: numberOrNull }),
  field("key", { from: numberOrNull }), field("step", { from: (text) => text || "Query" }), field("with", { from: (text) => text || "zero" }), field("guide", { from: numberOrNull }),
  field("append", { to: (ids) => ids.join("."), from: (text) => text.split(".").map(numberOrNull).filter((id) => id !== null) }),
  field("off", { to: (sites) => [...sites].join("~"), from: (text) => new Set(text.split("~").filter((site) => / /.test(site))) }),
  ...["text", "part", "layer", "head", "position"].map((name) => {
    const [, read, write] = field(name, { of: state.patch, ...(["layer", "head"].includes(name) ? natural : name === "part" ? { from: (text) => text || "residual" } : {}) });
    return [`patch_${name}`, () => (state.patch.text === "" ? "" : read()), write];
  }),
  ...kSliders.map(({ name, value }) => [name, () => (choices[name] === value ? "" : String(choices[name])), (text) => {
    setSlider(name, text === "" || Number.isNaN(Number(text)) ? value : Number(text));
  }]),
];

const linkOf = () => {
  const fields = new URLSearchParams({ model: state.model });
  if (state.other !== null) fields.set("other", state.other);
  for (const [name, read] of kLinked) {
    const text = read();
    if (text !== "") fields.set(name, text);
  }
  return `#${fields}`;
};
// The browser limits how often an address changes.
let linking = 0, written = "";
const writeLink = () => {
  clearTimeout(linking);
  linking = setTimeout(() => {
    written = linkOf();
    if (written !== location.hash) history.replaceState(null, "", written);
  }, 250);
};

// Where the page may not write to the clipboard, the link is there to be copied.
const copyLink = async () => {
  const address = location.href.split("#")[0] + linkOf();
  history.replaceState(null, "", written = linkOf());
  try {
    await navigator.clipboard.writeText(address);
    say("The link is copied.");
  } catch {
    byId("address").hidden = false;
    byId("address").value = address;
    byId("address").select();
  }
};

const linkedModel = () => new URLSearchParams(location.hash.slice(1)).get("model");
// True if the address has a state of one of these models, which is then the page's. A page of one model takes it for its own.
const readLink = () => {
  const fields = new URLSearchParams(location.hash.slice(1)), of = linkedModel();
  const model = of !== null && state.models.length === 1 ? state.models[0].id : of;
  if (!about(model)) return false;
  state.model = byId("model").value = model;
  state.other = about(fields.get("other")) ? fields.get("other") : null;
  byId("other").value = state.other ?? "";
  for (const [name, , write] of kLinked) write(fields.get(name) ?? "");
  for (const [id, text] of [["text", state.text], ["pair", state.pair], ["target", state.target], ["patch-text", state.patch.text]]) byId(id).value = text;
  state.ownText = state.text !== "";
  byId("slide").value = state.models.indexOf(about(model));
  return true;
};
// What the model cannot follow of a link is an error, and the page is as at its beginning.
const openLink = async () => {
  const of = linkedModel();
  if (of === null) return false;
  const follows = readLink();
  if (follows) await look();
  if (state.seen || !follows) {
    if (!state.seen) await chooseModel(firstModel());
    if (!about(of)) say(`The link is of a model that is not here: ${of}`, true);
    return true;
  }
  const { textContent: told } = [...document.querySelectorAll("p.error:not([hidden])"), byId("status")].find((each) => each.textContent !== "");
  state.model = null;
  await chooseModel(firstModel());
  say(`The link does not fit the model: ${told}`, true);
  return true;
};
