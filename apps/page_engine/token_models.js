// ---- Models of a tokenizer.json: a word becomes ids.
const fallbackToken = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
const bytesIfKnown = (text, vocabulary) => {
  const ids = Array.from(new TextEncoder().encode(text), (byte) => vocabulary.get(fallbackToken(byte)));
  return ids.includes(undefined) ? null : ids;
};

// Byte pair encoding (Sennrich et al., 2016): the merge of the lowest rank first, of equal ranks the leftmost.
const bpe = (model) => {
  const vocabulary = new Map(Object.entries(model.vocab)), merges = new Map(), unknown = vocabulary.get(model.unk_token);
  const { continuing_subword_prefix: prefix, end_of_word_suffix: suffix, byte_fallback: fallback, fuse_unk: fuses, ignore_merges: ignores } = model;
  const key = (left, right) => left * 2 ** 24 + right;
  model.merges.forEach((merge, rank) => {
    const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
    merges.set(key(vocabulary.get(left), vocabulary.get(right)), { rank, id: vocabulary.get(left + right.slice(prefix?.length ?? 0)) });
  });
  const symbolsOf = (word) => {
    const letters = Array.from(word), ids = [];
    let pending = false;
    const flush = () => { if (pending) ids.push(unknown); pending = false; };
    letters.forEach((letter, i) => {
      const written = (i > 0 && prefix ? prefix : "") + letter + (i === letters.length - 1 && suffix ? suffix : "");
      const id = vocabulary.get(written), bytes = id === undefined && fallback ? bytesIfKnown(written, vocabulary) : null;
      if (id !== undefined) { flush(); ids.push(id); }
      else if (bytes) ids.push(...bytes);
      else if (unknown !== undefined) { if (!fuses) flush(); pending = true; }
    });
    flush();
    return ids;
  };
  return (word) => {
    if (ignores && vocabulary.has(word)) return [vocabulary.get(word)];
    const ids = symbolsOf(word);
    for (;;) {
      let best = null, at = -1;
      for (let i = 0; i + 1 < ids.length; ++i) {
        const merge = merges.get(key(ids[i], ids[i + 1]));
        if (merge && (!best || merge.rank < best.rank)) [best, at] = [merge, i];
      }
      if (!best) return ids;
      ids.splice(at, 2, best.id);
    }
  };
};

// The longest piece first (Schuster and Nakajima, 2012).
const wordPiece = ({ vocab, unk_token: unknown = "[UNK]", continuing_subword_prefix: prefix = "##", max_input_chars_per_word: most = 100 }) => {
  const vocabulary = new Map(Object.entries(vocab));
  return (word) => {
    const ids = [], letters = Array.from(word);
    for (let begin = 0, end; begin < letters.length && letters.length <= most; begin = end) {
      const piece = (to) => (begin > 0 ? prefix : "") + letters.slice(begin, to).join("");
      for (end = letters.length; end > begin && !vocabulary.has(piece(end)); --end);
      if (end === begin) return [vocabulary.get(unknown)];
      ids.push(vocabulary.get(piece(end)));
    }
    return letters.length <= most ? ids : [vocabulary.get(unknown)];
  };
};

// The most probable pieces (Kudo, 2018), by Viterbi's algorithm; a character that is no piece costs 10 more than the worst.
const unigram = ({ vocab, unk_id: unknown, byte_fallback: fallback }) => {
  const pieces = new Map(vocab.map(([text, score], id) => [text, { id, score }])), ids = new Map(vocab.map(([text], id) => [text, id]));
  const longest = vocab.reduce((most, [text]) => Math.max(most, text.length), 0);
  const worst = vocab.reduce((least, [, score]) => Math.min(least, score), Infinity) - 10;
  const unknownIds = (text) => {
    const found = ids.get(text), bytes = fallback ? bytesIfKnown(text, ids) : null;
    if (found !== undefined) return [found];
    if (!bytes && (unknown ?? null) === null) throw new Error(`the character ${text} is not in the vocabulary, which has no unk_id`);
    return bytes ?? [unknown];
  };
  return (word) => {
    const best = [{ score: 0 }];
    for (let begin = 0; begin < word.length;) {
      const next = begin + String.fromCodePoint(word.codePointAt(begin)).length, so_far = best[begin].score;
      const offer = (end, score, id) => { if (!best[end] || score > best[end].score) best[end] = { score, id, begin }; };
      let known = false;
      for (let end = begin + 1; end <= Math.min(word.length, begin + longest); ++end) {
        const piece = pieces.get(word.slice(begin, end));
        if (!piece) continue;
        offer(end, piece.score + so_far, piece.id);
        known ||= end === next;
      }
      if (!known) offer(next, worst + so_far, null);
      begin = next;
    }
    const found = [];
    for (let end = word.length; end > 0; end = best[end].begin) {
      const { id, begin } = best[end], later = found.at(-1);
      const unk = id === null || id === unknown;
      if (unk && later?.unk) Object.assign(later, { begin, text: word.slice(begin, end) + later.text });
      else found.push({ id, unk, text: word.slice(begin, end) });
    }
    return found.reverse().flatMap(({ id, unk, text }) => (unk ? unknownIds(text) : [id]));
  };
};

const wordLevel = ({ vocab, unk_token: unknown = "<unk>" }) => {
  const vocabulary = new Map(Object.entries(vocab));
  return (word) => {
    const id = vocabulary.get(word) ?? vocabulary.get(unknown);
    if (id === undefined) throw new Error(`the word '${word}' is not in the vocabulary, which has no ${unknown}`);
    return [id];
  };
};

// Without merges, of the vocabulary's characters (tzoo's own kind).
const charLevel = ({ vocab }) => (word) => Array.from(word, (letter) => {
  if (vocab[letter] !== undefined) return vocab[letter];
  const code = letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  throw new Error(`the character '${letter}' (U+${code}) is not in the vocabulary of ${Object.keys(vocab).length} characters`);
});
const kTokenModels = { BPE: bpe, WordPiece: wordPiece, Unigram: unigram, WordLevel: wordLevel };
