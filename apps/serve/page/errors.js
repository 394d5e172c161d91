// ---- An error stands at its cause, in plain words; what is no longer true is dimmed until the next good answer.
const kUnknown = /^the character '(.+)' \((U\+(\w+))\)/;
const plainWords = ({ message, param, tokens, limit }) => {
  if (tokens === 0) return "Type something: the model needs at least one token.";
  if (tokens > limit) return `${tokens} tokens are too many: at most ${limit} are read. Shorten the text.`;
  if (param === "with") return "A whole block has no mean to give. Choose zeros, or switch off its attention and its feed-forward instead.";
  const bare = message.replace(/^'\w+':? /, ""), [, letter, code] = kUnknown.exec(bare) ?? [];
  if (letter) return `The model does not know “${letter}” (${code}), which is none of its vocabulary's characters.`;
  return bare.charAt(0).toUpperCase() + bare.slice(1);
};

const kPlaces = { text_pair: "pair", target: "target", position: "text", with: "with" };
const kOffFields = ["layers", "sublayers", "heads", "cross_heads"];
// An unknown character is named without its field.
const fieldWith = (message) => {
  const code = kUnknown.exec(message)?.[3];
  return code && ["text", "pair", "target"].find((name) => state[name].includes(String.fromCodePoint(parseInt(code, 16))));
};
const placeOf = ({ param, message }) => {
  if (param === "text") return isPair() && state.changed === "target" ? "target" : "text";
  if (kOffFields.includes(param)) return "chips";
  if (param?.startsWith("patch_")) return "patch";
  return kPlaces[param] ?? fieldWith(message) ?? "status";
};

const markField = (place, wrong) => {
  const field = byId(place === "patch" ? "patch-text" : place);
  if (field?.matches("textarea, select")) field.setAttribute("aria-invalid", String(wrong));
};
const showErrorAt = (place, error) => {
  byId(`${place}-error`).textContent = plainWords(error);
  byId(`${place}-error`).hidden = false;
  markField(place, true);
};
// What the last answer says can no longer be pointed at or read out.
const setStale = (stale) => {
  document.body.classList.toggle("stale", stale);
  for (const part of document.querySelectorAll("#tokens, #written, #lists, #moved, #inside, #blocks :is(.says, .length)")) part.inert = stale;
  byId("run").disabled = byId("more").disabled = stale;
};
const clearErrors = () => {
  for (const { id } of document.querySelectorAll("p.error:not(#status)")) {
    byId(id).hidden = true;
    markField(id.replace("-error", ""), false);
  }
  setStale(false);
};
const fail = (error) => {
  clearErrors();
  state.running = false;
  const place = placeOf(error);
  say(place === "status" ? plainWords(error) : "", place === "status");
  if (place !== "status") showErrorAt(place, error);
  setStale(true);
  if (state.seen) renderChips();
};
