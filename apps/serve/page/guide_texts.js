// ---- Example texts of the guide: each page has some that show its idea, and proposes the one that suits the model. Which one does
// is found from the model's kind and its tokenizer: a text like those that it was made for needs few tokens.
// `more`: how much more it may cost than English. A vocabulary for the Bible has English words too, and one of two languages spends
// a little more on each.
const kRegisters = {
  bible: { kinds: ["decoder", "encoder"], more: 1.15, probe: "And Moses spake unto the children of Israel, saying, Thou shalt not do evil" },
  english: { kinds: ["decoder", "encoder", "encoder-decoder"], probe: "the children were playing football in the park when their mother called" },
  spanish: { kinds: ["encoder-decoder"], more: 1.25, probe: "el gato negro sigue a la reina y las niñas cantan" },
  sums: { kinds: ["encoder-decoder"], probe: "12+34", letters: true },
  digits: { kinds: ["encoder-decoder"], probe: "31524", letters: true },
};

// All letters of a vocabulary of characters; null for one of words or parts of words, and where not all answers are named.
const alphabet = () => {
  const { answer } = state.seen;
  if (answer?.kind !== "token" || answer.count > answer.names.length) return null;
  const letters = answer.names.filter((name) => [...name].length === 1);
  return letters.length > answer.names.length / 2 ? new Set(letters) : null;
};
// Tokens for each letter of the text; Infinity if the model does not know it: words that it lacks are all the same token, letters
// that it lacks an error.
const costOf = async (text) => {
  const letters = alphabet();
  if (letters) return [...text].every((letter) => letters.has(letter)) ? 1 : Infinity;
  const { tokens } = await ask("/tokenize", { model: state.model, content: text, add_special: false }).catch(() => ({ tokens: [] }));
  return new Set(tokens).size < new Set(text.split(" ")).size ? Infinity : tokens.length / text.length;
};

// The register that suits a model, or null; of equal ones the first.
const registers = new Map();
const registerOf = async (model) => {
  if (registers.has(model)) return registers.get(model);
  let best = null, least = Infinity;
  for (const [name, { kinds, probe, letters, more = 1 }] of Object.entries(kRegisters)) {
    if (!kinds.includes(shape().kind) || (letters && !alphabet())) continue;
    const cost = (await costOf(probe)) / more;
    if (cost < least) [best, least] = [name, cost];
  }
  registers.set(model, best);
  return best;
};

// The page's text for this model, as {text, target}, or null for what it cannot read. The word between stars is the one to be
// guessed: an encoder sees its mask in its place, a decoder what stands before it, other heads the word.
const exampleOf = async (page) => {
  const model = state.model, { head, mask_token: mask } = about(model);
  if (head === "question-answering" || !page.texts) return null;
  const register = await registerOf(model);
  if (register === "sums") return { text: "27+15", target: "4" };
  if (register === "digits") return { text: "31524", target: "" };
  if (register === "spanish") return { text: page.texts.spanish[0], target: page.texts.spanish[1] };
  if (register === null) return null;
  const [before, word, after] = page.texts[register].split("*"), whole = before + word + after;
  if ((await costOf(whole)) === Infinity) return null;
  if (shape().kind === "encoder-decoder") return { text: whole, target: "" };
  // The space belongs to a word, but in a vocabulary of characters it would be what is guessed.
  if (shape().kind === "decoder") return { text: alphabet() ? before : before.trimEnd() };
  return { text: mask && state.seen.answer?.kind === "token" ? `${before}${mask}${after}` : whole };
};
