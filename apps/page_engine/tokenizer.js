// ---- A tokenizer of the parts of a tokenizer.json (tokenizer/pipeline): text to ids, and ids to bytes.
const isWordLetter = (letter) => letter !== undefined && /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]/u.test(letter);

// The text split at added tokens, the longest at each place.
const splitAtTokens = (pieces, tokens) => {
  if (tokens.length === 0) return pieces;
  const byLength = [...tokens].sort((a, b) => b.content.length - a.content.length);
  return pieces.flatMap((piece) => {
    if (piece.id !== undefined) return [piece];
    const { text } = piece, found = [];
    let done = 0;
    const push = (begin, end, id) => { if (begin < end) found.push({ text: text.slice(begin, end), id, first: piece.first && begin === 0 }); };
    for (let at = 0; at < text.length;) {
      const token = byLength.find(({ content }) => content !== "" && text.startsWith(content, at)), end = at + (token?.content.length ?? 1);
      const whole = token && (!token.single_word || (!isWordLetter(Array.from(text.slice(0, at)).at(-1)) && !isWordLetter(Array.from(text.slice(end))[0])));
      if (whole) {
        const from = token.lstrip ? Math.max(done, text.slice(0, at).search(/\p{White_Space}*$/u)) : at;
        const to = token.rstrip ? end + /^\p{White_Space}*/u.exec(text.slice(end))[0].length : end;
        push(done, from);
        push(from, to, token.id);
        done = to;
      }
      at = end;
    }
    push(done, text.length);
    return found;
  });
};

const kCleanUp = [[" .", "."], [" ?", "?"], [" !", "!"], [" ,", ","], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"]];
const cleanedUp = (text) => kCleanUp.reduce((some, [from, to]) => some.replaceAll(from, to), text);
const byteOf = (token) => (/^<0x[0-9A-Fa-f]{2}>$/.test(token) ? parseInt(token.slice(3, 5), 16) : -1);
const decodedBytes = (bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return "\ufffd".repeat(bytes.length);
  }
};
// A function from the tokens' texts to texts for each type; of byte level, to bytes.
const kDecoders = {
  Sequence: ({ decoders }) => (tokens) => decoders.reduce((some, part) => kDecoders[part.type](part)(some), tokens),
  WordPiece: ({ prefix = "##", cleanup = true }) => (tokens) => tokens.map((token, i) => {
    const text = i === 0 ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
    return cleanup ? cleanedUp(text).replaceAll(" do not", " don't") : text;
  }),
  ByteLevel: () => (tokens) => Uint8Array.from(tokens.flatMap((token) => {
    const bytes = Array.from(token, (letter) => kAlphabetBytes.get(letter));
    return bytes.includes(undefined) ? [...new TextEncoder().encode(token)] : bytes;
  })),
  Metaspace: ({ replacement: mark = "▁", prepend_scheme: scheme, add_prefix_space: adds = true }) => (tokens) => tokens.map((token, i) =>
    token.replaceAll(mark, i === 0 && (scheme ?? (adds ? "always" : "never")) !== "never" ? "" : " ")),
  BPEDecoder: ({ suffix = "</w>" }) => (tokens) => tokens.map((token, i) => token.replaceAll(suffix, i === tokens.length - 1 ? "" : " ")),
  ByteFallback: () => (tokens) => {
    const texts = [];
    let bytes = [];
    const flush = () => { if (bytes.length > 0) texts.push(decodedBytes(bytes)); bytes = []; };
    for (const token of tokens) {
      if (byteOf(token) >= 0) bytes.push(byteOf(token));
      else { flush(); texts.push(token); }
    }
    flush();
    return texts;
  },
  Fuse: () => (tokens) => [tokens.join("")],
  Replace: ({ pattern, content }) => (tokens) => tokens.map((token) => token.replaceAll(patternOf(pattern), () => content)),
  Strip: ({ content = " ", start = 0, stop = 0 }) => (tokens) => tokens.map((token) => {
    for (let i = 0; i < start && token.startsWith(content); ++i) token = token.slice(content.length);
    for (let i = 0; i < stop && token.endsWith(content); ++i) token = token.slice(0, -content.length);
    return token;
  }),
};

class Tokenizer {
  constructor(file) {
    const { kind, model, added_tokens: added = [], normalizer, pre_tokenizer: words, templates, decoder } = file;
    const entries = Array.isArray(model.vocab) ? model.vocab.map(([text], id) => [text, id]) : Object.entries(model.vocab);
    this.spellings = new Map(entries.map(([text, id]) => [id, text]));
    for (const { id, content } of added) this.spellings.set(id, content);
    this.normalize = normalizerOf(normalizer);
    this.raw = added.filter(({ normalized }) => !normalized);
    this.normalized = added.filter(({ normalized }) => normalized).map((token) => ({ ...token, content: this.normalize(token.content) }));
    this.words = words;
    this.encodeWord = kind === "char" ? charLevel(model) : kTokenModels[model.type](model);
    this.templates = templates;  // lists of pieces {text: 0 or 1} or {ids}, each with its type
    this.decoder = decoder && kDecoders[decoder.type](decoder);
    this.cleansUp = file.cleans_up_spaces;
    this.known = new Map();
  }
  // Without special tokens.
  ids(text) {
    let pieces = splitAtTokens([{ text, first: true }], this.raw);
    pieces = pieces.map((piece) => (piece.id === undefined ? { ...piece, text: this.normalize(piece.text) } : piece)).filter((piece) => piece.text !== "");
    return preTokenized(this.words, splitAtTokens(pieces, this.normalized)).flatMap(({ text: word, id }) => id ?? this.encodeWord(word));
  }
  // {ids, types} with the special tokens of the template.
  encode(first, second) {
    const texts = [first, second].map((text) => (text === undefined ? [] : this.ids(text))), ids = [], types = [];
    for (const { text, ids: own, type } of second === undefined ? this.templates.single : this.templates.pair) {
      for (const id of own ?? texts[text]) {
        ids.push(id);
        types.push(type);
      }
    }
    return { ids, types };
  }
  spelling(id) {
    return this.spellings.get(id) ?? `#${id}`;
  }
  // Bytes of the text, special tokens included.
  decode(ids) {
    const tokens = ids.map((id) => this.spellings.get(id) ?? "").filter((token) => token !== "");
    const texts = this.decoder ? this.decoder(tokens) : [tokens.join(" ")];
    if (texts instanceof Uint8Array) return texts;
    const text = Array.isArray(texts) ? texts.join("") : texts;
    return new TextEncoder().encode(this.cleansUp ? cleanedUp(text) : text);
  }
  // What a token adds to a text: some decoders drop a space at the beginning, so it is decoded after another token.
  added(id) {
    this.before ??= [...this.spellings.keys()].sort((a, b) => a - b).find((each) => /^[a-zA-Z]$/.test(new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.decode([each])))) ?? 0;
    if (!this.known.has(id)) {
      const bytes = this.spellings.has(id) ? this.decode([this.before, id]).subarray(this.decode([this.before]).length) : [];
      this.known.set(id, bytes.length > 0 ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes) : this.spelling(id));
    }
    return this.known.get(id);
  }
}
const makeTokenizer = (file) => new Tokenizer(file);
