// ---- The guide: one idea a page, with its equation and something to try on an example text (guide_texts.js) or the one that is typed.
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
  { title: "Tokens are numbers", equation: "x_i = E[token_i]", at: "#tokens", action: "See the tokens",
    texts: { bible: "And Nebuchadnezzar the king spake unto the *people*.", english: "the unbelievable hippopotamus was *happy* today.", spanish: ["these butterflies", "estas"] },
    says: "A model cannot read letters. The text is split into tokens, and a table gives each token a row of numbers: a fingerprint of its meaning. Tokens that are used alike get similar rows.",
    set: () => { state.position = null; } },
  { title: "Where a word stands", equation: () => kPlaced[shape().positions] ?? "score + term of i and j", when: () => shape().positions !== "none", at: "#steps", action: "See the positions in a score",
    texts: { bible: "the servant of the king is not the king of the *servant*, saith he.", english: "the dog chased the cat and the cat chased the *dog* again.", spanish: ["the dog sees the cat", "el perro ve"] },
    says: "Attention looks at all words at once, so by itself it would read a shuffled sentence the same way. Positions are the words' coordinates: added to the embedding, or, in newer models, to the scores of attention.",
    set: () => follow(["rotary", "sinusoidal", "learned"].includes(shape().positions) ? "Dot products" : "Position") },
  { title: "Query, key, value", equation: "q = x W_Q,  k = x W_K,  v = x W_V", at: "#steps", action: "Look at a query",
    texts: { bible: "And Moses said unto Pharaoh, Let my people go; and *he* would not.", english: "Anna gave Peter the book because *he* had asked for it.", spanish: ["my sister paints the small house", "mi hermana"] },
    says: "As in a library: the query is what a token is looking for, the key is the label on the back of each book, the value is what the book says. Every token has all three.",
    set: () => follow("Query") },
  { title: "How well they match", equation: "s_j = q · k_j / √d_k", at: "#steps", action: "Multiply query and keys",
    texts: { bible: "and Isaac begat Jacob; and Jacob begat Judas; and Judas *begat* Phares.", english: "one two three, one two three, one *two* three.", spanish: ["the king follows the queen", "el rey sigue"] },
    says: "A query is compared with every key by a dot product. Sums of many products are large, and a softmax of large numbers learns nothing, so they are divided by the root of their number.",
    set: () => follow("Scale") },
  { title: "No looking ahead", equation: "s_j = −∞ for j > i", when: isDecoding, at: "#steps", action: "Hide the future from a token in the middle",
    texts: { bible: "In the beginning God created the heaven and the *earth*.", english: "She went to the bank to get some *money* for him.", spanish: ["the black cat sleeps", "el gato"] },
    says: "A model that writes the next word must not see it while it learns. The mask gives the scores of all later tokens −∞, and their weights become exactly 0.",
    set: () => follow("Mask", { query: middle(), key: null }) },
  { title: "Scores become shares", equation: "a_j = exp(s_j) / Σ exp(s)", at: "#steps", action: "Turn scores into weights",
    texts: { bible: "The LORD is my shepherd; I shall not *want*.", english: "The cat sat on the *mat* and slept.", spanish: ["the girl hears the bird", "la niña oye"] },
    says: "The softmax makes the scores positive numbers that add up to 1: how much of its attention the token gives to each of the others. The values are then mixed by these shares.",
    set: () => follow("Softmax") },
  { title: "Many heads", equation: "MultiHead = [head_1, …, head_h] W_O", at: "#heads", action: "Switch the first head off",
    texts: { bible: "And God called the light Day, and the darkness he called *Night*.", english: "The boys who lived in the old house *were* happy.", spanish: ["those yellow flowers", "esas flores"] },
    says: "One head can ask one question at a time. Like specialists at a scene, several heads look at the same words for different things; their findings are put side by side. What does the answer lose without one?",
    set: () => { turnOff(`heads ${state.layer ??= 0}.0`); state.head = -1; } },
  { title: "Two texts, one attention", equation: "q from the decoder,  k and v from the encoder", when: () => shape().cross, at: "#heads", action: "See what the decoder reads",
    texts: { english: "A small boy found a red *ball* in the garden.", spanish: ["the black cat", "el gato"] },
    says: "To write “el gato”, the decoder looks back at “the cat”: its queries meet the keys and values of the encoder's tokens. This is where a translation finds its source.",
    set: () => Object.assign(state, { map: "cross", head: -1, layer: state.layer ?? 0 }) },
  { title: "The thinking layer", equation: "FFN(x) = W_2 f(W_1 x)", at: "#blocks", action: "Switch the first feed-forward off",
    texts: { bible: "And the children of Israel went out of the land of *Egypt*.", english: "Paris is the capital of *France* and London is the capital of England.", spanish: ["the horse runs", "el caballo"] },
    says: "After the tokens have exchanged what they know, the feed-forward network works on each token alone. It holds most of the weights; without one of them the answer usually changes more than without a head.",
    set: () => turnOff("sublayers 0.feed_forward") },
  { title: "The highway", equation: "x ← x + Sublayer(x)", at: "#blocks", action: "Switch the last block off",
    texts: { bible: "Holy, holy, *holy*, is the LORD of hosts.", english: "row, row, *row* your boat, gently down the stream.", spanish: ["the lion sings", "el león"] },
    says: "Each sublayer only adds to its input. This residual connection is a highway on which a word's first fingerprint reaches the end, and on which gradients come back. So a block can even be left out.",
    set: () => turnOff(`layers ${lastBlock()}`) },
  { title: "When does it know?", equation: "p = softmax(W_U norm(x_l))", when: () => Boolean(state.seen.lens), at: "#lens-part", action: "Open the last block",
    texts: { bible: "And it came to *pass* in those days.", english: "Once upon a *time* there was a king.", spanish: ["the beautiful city", "la ciudad"] },
    says: "The head can be put on the state after any block: the logit lens shows how the answer forms on its way up. Compare the best answers beside the blocks from bottom to top.",
    set: () => { state.layer = lastBlock(); state.off.clear(); } },
  { title: "From numbers to a word", equation: "p_i = exp(z_i / T) / Σ exp(z / T)", when: () => state.seen.answer?.kind === "token", at: "#answer-part", action: "Make it bold: temperature 0.5",
    texts: { bible: "And God *said* unto him.", english: "My favourite food is *pizza* with cheese.", spanish: ["this woman finds a book", "esta mujer"] },
    says: "The last state gives every token of the vocabulary a probability, and one is drawn. A low temperature sharpens the distribution and makes the text safe, a high one makes it surprising.",
    set: () => setSlider("temperature", 0.5) },
];
