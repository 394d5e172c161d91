// ---- Pre-tokenizers of a tokenizer.json: a text becomes words. A piece is {text, id, first}: an added token has an id, and
// `first` is true at the beginning of the whole text.
const kByteAlphabet = (() => {  // GPT-2's: a visible character for each byte
  const letters = [];
  for (let byte = 0, next = 256; byte < 256; ++byte) {
    const seen = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    letters.push(String.fromCharCode(seen ? byte : next++));
  }
  return letters;
})();
const kAlphabetBytes = new Map(kByteAlphabet.map((letter, byte) => [letter, byte]));
const inByteAlphabet = (text) => Array.from(new TextEncoder().encode(text), (byte) => kByteAlphabet[byte]).join("");

// Oniguruma's expressions in JavaScript's: (?i:…) by both cases, possessive quantifiers by the others, and \s as Unicode has it.
const regexOf = (expression) => new RegExp(expression
  .replaceAll(/\(\?i:([^)]*)\)/g, (_, inner) => `(?:${inner.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}${letter === "s" ? "ſ" : ""}]`)
    .replaceAll(/\[((?:\[[^\]]*\])+)\]/g, (__, letters) => `[${letters.replaceAll(/[[\]]/g, "")}]`)})`)
  .replaceAll(/(\{\d+(?:,\d*)?\}|[+?*])\+/g, "$1").replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}"), "gu");
const kGpt2 = regexOf(String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`);
const kPunctuation = /[!-/:-@[-`{-~\p{P}]/gu;

// The matches and what is between them, in order.
const partsOf = (text, pattern) => {
  const parts = [];
  let done = 0;
  for (const match of text.matchAll(typeof pattern === "string" ? new RegExp(pattern.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gu") : pattern)) {
    if (match.index > done) parts.push({ text: text.slice(done, match.index), isMatch: false });
    if (match[0] !== "") parts.push({ text: match[0], isMatch: true });
    done = match.index + match[0].length;
  }
  if (done < text.length) parts.push({ text: text.slice(done), isMatch: false });
  return parts;
};
const kBehaviors = {
  Removed: (parts) => parts.filter(({ isMatch }) => !isMatch),
  Isolated: (parts) => parts,
  Contiguous: (parts) => joinedIf(parts, (part, before) => part.isMatch === before.isMatch),
  MergedWithPrevious: (parts) => joinedIf(parts, (part, before) => part.isMatch && !before.isMatch),
  MergedWithNext: (parts) => joinedIf(parts, (part, before) => before.isMatch && !part.isMatch),
};
const joinedIf = (parts, joins) => {
  const joined = [];
  parts.forEach((part, i) => {
    if (i > 0 && joins(part, parts[i - 1])) joined.at(-1).text += part.text;
    else joined.push({ ...part });
  });
  return joined;
};
const splitAt = (pattern, behavior, invert = false) => (piece) => {
  const parts = partsOf(piece.text, pattern).map(({ text, isMatch }) => ({ text, isMatch: isMatch !== invert }));
  return kBehaviors[behavior](parts).map(({ text }, i) => ({ text, first: piece.first && i === 0 }));
};

const metaspace = ({ replacement: mark = "▁", prepend_scheme: scheme, add_prefix_space: adds = true, split = true }) => (piece) => {
  const when = scheme ?? (adds ? "always" : "never"), prepends = when === "always" || (when === "first" && piece.first);
  const starts = piece.text.startsWith(" ") || piece.text.startsWith(mark);
  const text = (prepends && !starts ? mark : "") + piece.text.replaceAll(" ", mark);
  return (split ? kBehaviors.MergedWithNext(partsOf(text, mark)) : [{ text }]).map((part, i) => ({ text: part.text, first: piece.first && i === 0 }));
};
const byteLevel = ({ add_prefix_space: adds = true, use_regex: splits = true }) => (piece) => {
  const text = (adds && !piece.text.startsWith(" ") ? " " : "") + piece.text;
  const words = splits ? text.match(kGpt2) ?? [] : [text];
  return words.map((word, i) => ({ text: inByteAlphabet(word), first: piece.first && i === 0 }));
};

// A function from a piece to pieces for each type.
const kPreTokenizers = {
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  Split: ({ pattern, behavior, invert = false }) => splitAt(patternOf(pattern), behavior, invert),
  BertPreTokenizer: () => (piece) => splitAt(/\p{White_Space}+/gu, "Removed")(piece).flatMap(splitAt(kPunctuation, "Isolated")),
  Whitespace: () => splitAt(/[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\p{White_Space}]+/gu, "Removed", true),
  WhitespaceSplit: () => splitAt(/\p{White_Space}/gu, "Removed"),
  Punctuation: ({ behavior = "Isolated" }) => splitAt(kPunctuation, behavior),
  Digits: ({ individual_digits: single = false }) => splitAt(/\p{N}/gu, single ? "Isolated" : "Contiguous"),
};
const preTokenized = (section, pieces) => {
  if (!section) return pieces;
  if (section.type === "Sequence") return section.pretokenizers.reduce((some, part) => preTokenized(part, some), pieces);
  const split = kPreTokenizers[section.type](section);
  return pieces.flatMap((piece) => (piece.id === undefined ? split(piece) : [piece])).filter(({ text }) => text !== "");
};
