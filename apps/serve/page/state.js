// ---- State of the page. `seen` is the last answer of POST /look, `beside` that of a second model.
const state = {
  models: [], model: null, other: null, text: "", ownText: false, pair: "", target: "", append: [], position: null,
  stack: null, layer: 0, map: "self", head: -1, coloured: null, query: null, key: null, step: "Query", click: "look", guide: null, off: new Set(), with: "zero",
  patch: { text: "", part: "residual", layer: 0, head: 0, position: "", counts: null },
  many: false, running: false, seen: null, beside: null, changed: "text",
};
const about = (name) => state.models.find((model) => model.id === name);
const shape = () => state.seen?.shape;
const isPair = () => shape()?.kind === "encoder-decoder";
const grows = () => shape() && shape().kind !== "encoder";
// The input tokens of the opened stack, and those whose position is chosen.
const answerTokens = () => (isPair() ? state.seen.written : state.seen.tokens);
const stackTokens = () => (isPair() && shape().stack === "decoder" ? state.seen.written : state.seen.tokens);
const labels = (tokens) => tokens.map((token) => visible(token.token));
const percent = (share) => share >= 0.9995 ? "100 %" : `${(100 * share).toFixed(share >= 0.1 ? 1 : share >= 0.01 ? 2 : 3)} %`;
const shortCount = (count) => count >= 1e6 ? `${(count / 1e6).toPrecision(3)} M` : count.toLocaleString("en");
