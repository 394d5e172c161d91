// ---- The guide: one idea a page, with its equation and something to try on the text that is typed.
// A page that has no `when`, or whose when() holds, is one of this model's. set() changes the state; `at` is where to look.
const middle = () => Math.floor((stackTokens().length - 1) / 2);
const lastBlock = () => shape().layers - 1;
const follow = (title, more = {}) => Object.assign(state, { layer: state.layer ?? 0, head: Math.max(0, state.head), map: "self", step: title, ...more });
const turnOff = (...sites) => { state.off = new Set(sites); };
const isDecoding = () => shape().stack === "decoder";
const kPlaced = {
  rotary: "(R_i q) · (R_j k_j)", alibi: "q · k_j / √d_k − m |i − j|", t5_buckets: "q · k_j + b_bucket(i − j)", sinusoidal: "x_i = E[token_i] + sin, cos of i", learned: "x_i = E[token_i] + P[i]",
};

const kGuide = [
  { title: "Tokens are numbers", equation: "x_i = E[token_i]", at: "#tokens", action: "Add a word",
    says: "A model cannot read letters. The text is split into tokens, and a table gives each token a row of numbers: a fingerprint of its meaning. Tokens that are used alike get similar rows.",
    set: () => { state.text += `${/\s$/.test(state.text) ? "" : " "}and`; state.append = []; state.position = null; } },
  { title: "Where a word stands", equation: () => kPlaced[shape().positions] ?? "score + term of i and j", when: () => shape().positions !== "none", at: "#steps", action: "See the positions in a score",
    says: "Attention looks at all words at once, so by itself it would read a shuffled sentence the same way. Positions are the words' coordinates: added to the embedding, or, in newer models, to the scores of attention.",
    set: () => follow(["rotary", "sinusoidal", "learned"].includes(shape().positions) ? "Dot products" : "Position") },
  { title: "Query, key, value", equation: "q = x W_Q,  k = x W_K,  v = x W_V", at: "#steps", action: "Look at a query",
    says: "As in a library: the query is what a token is looking for, the key is the label on the back of each book, the value is what the book says. Every token has all three.",
    set: () => follow("Query") },
  { title: "How well they match", equation: "s_j = q · k_j / √d_k", at: "#steps", action: "Multiply query and keys",
    says: "A query is compared with every key by a dot product. Sums of many products are large, and a softmax of large numbers learns nothing, so they are divided by the root of their number.",
    set: () => follow("Scale") },
  { title: "No looking ahead", equation: "s_j = −∞ for j > i", when: isDecoding, at: "#steps", action: "Hide the future from a token in the middle",
    says: "A model that writes the next word must not see it while it learns. The mask gives the scores of all later tokens −∞, and their weights become exactly 0.",
    set: () => follow("Mask", { query: middle(), key: null }) },
  { title: "Scores become shares", equation: "a_j = exp(s_j) / Σ exp(s)", at: "#steps", action: "Turn scores into weights",
    says: "The softmax makes the scores positive numbers that add up to 1: how much of its attention the token gives to each of the others. The values are then mixed by these shares.",
    set: () => follow("Softmax") },
  { title: "Many heads", equation: "MultiHead = [head_1, …, head_h] W_O", at: "#heads", action: "Switch the first head off",
    says: "One head can ask one question at a time. Like specialists at a scene, several heads look at the same words for different things; their findings are put side by side. What does the answer lose without one?",
    set: () => { turnOff(`heads ${state.layer ??= 0}.0`); state.head = -1; } },
  { title: "Two texts, one attention", equation: "q from the decoder,  k and v from the encoder", when: () => shape().cross, at: "#heads", action: "See what the decoder reads",
    says: "To write “el gato”, the decoder looks back at “the cat”: its queries meet the keys and values of the encoder's tokens. This is where a translation finds its source.",
    set: () => Object.assign(state, { map: "cross", head: -1, layer: state.layer ?? 0 }) },
  { title: "The thinking layer", equation: "FFN(x) = W_2 f(W_1 x)", at: "#blocks", action: "Switch the first feed-forward off",
    says: "After the tokens have exchanged what they know, the feed-forward network works on each token alone. It holds most of the weights; without one of them the answer usually changes more than without a head.",
    set: () => turnOff("sublayers 0.feed_forward") },
  { title: "The highway", equation: "x ← x + Sublayer(x)", at: "#blocks", action: "Switch the last block off",
    says: "Each sublayer only adds to its input. This residual connection is a highway on which a word's first fingerprint reaches the end, and on which gradients come back. So a block can even be left out.",
    set: () => turnOff(`layers ${lastBlock()}`) },
  { title: "When does it know?", equation: "p = softmax(W_U norm(x_l))", when: () => Boolean(state.seen.lens), at: "#lens-part", action: "Open the last block",
    says: "The head can be put on the state after any block: the logit lens shows how the answer forms on its way up. Compare the best answers beside the blocks from bottom to top.",
    set: () => { state.layer = lastBlock(); state.off.clear(); } },
  { title: "From numbers to a word", equation: "p_i = exp(z_i / T) / Σ exp(z / T)", when: () => state.seen.answer?.kind === "token", at: "#answer-part", action: "Make it bold: temperature 0.5",
    says: "The last state gives every token of the vocabulary a probability, and one is drawn. A low temperature sharpens the distribution and makes the text safe, a high one makes it surprising.",
    set: () => setSlider("temperature", 0.5) },
];
