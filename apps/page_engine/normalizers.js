// ---- Normalizers of a tokenizer.json: what they change before a text is split.
const kSpaces = /^\p{White_Space}$/u;
const characters = (text, change) => Array.from(text, change).join("");
const lowercase = (text) => characters(text, (letter) => letter.toLowerCase());  // letter by letter: no final sigma

const bertText = (text, { clean_text: cleans = true, handle_chinese_chars: chinese = true, strip_accents: strips, lowercase: lowers = true }) => {
  if (cleans) text = characters(text, (letter) => (/[\t\n\r]/.test(letter) ? " " : /[\0\ufffd\p{Cc}\p{Cf}\p{Co}]/u.test(letter) ? "" : kSpaces.test(letter) ? " " : letter));
  if (chinese) text = text.replace(/[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu, " $& ");
  if (strips ?? lowers) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
  return lowers ? lowercase(text) : text;
};
const patternOf = (pattern) => (typeof pattern === "string" ? pattern : pattern.Regex ? regexOf(pattern.Regex) : pattern.String);  // older files have a text

// sentencepiece's table: a double-array trie (darts-clone) from bytes to the texts that replace them.
const charsmapOf = (base64) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)), size = new DataView(bytes.buffer).getUint32(0, true);
  const units = new Uint32Array(bytes.buffer.slice(4, 4 + size)), texts = bytes.subarray(4 + size), coder = new TextEncoder(), utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  const children = (at) => at ^ ((units[at] >>> 10) << ((units[at] >>> 6) & 8));
  const replaced = (text) => {  // by the shortest rule at its beginning
    let at = children(0);
    for (const byte of coder.encode(text)) {
      at ^= byte;
      const unit = units[at];
      if (byte === 0 || (unit & 0x800000ff) !== byte) return null;
      at = children(at);
      const begin = units[at] & 0x7fffffff;
      if (((unit >>> 8) & 1) === 0 || (texts[begin] & 0xc0) === 0x80) continue;
      return utf8.decode(texts.subarray(begin, texts.indexOf(0, begin)));
    }
    return null;
  };
  const clusters = new Intl.Segmenter("en", { granularity: "grapheme" });
  return (text) => Array.from(clusters.segment(text), ({ segment }) => (coder.encode(segment).length < 6 ? replaced(segment) : null)
    ?? characters(segment, (letter) => replaced(letter) ?? letter)).join("");
};

// A function of the text for each type.
const kNormalizers = {
  Sequence: ({ normalizers }) => normalizers.map(normalizerOf).reduce((first, next) => (text) => next(first(text)), (text) => text),
  BertNormalizer: (options) => (text) => bertText(text, options),
  Lowercase: () => lowercase,
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ""),
  Strip: ({ strip_left: left = true, strip_right: right = true }) => (text) => {
    if (left) text = text.replace(/^\p{White_Space}+/u, "");
    return right ? text.replace(/\p{White_Space}+$/u, "") : text;
  },
  Replace: ({ pattern, content }) => (text) => text.replaceAll(patternOf(pattern), () => content),
  Prepend: ({ prepend }) => (text) => (text === "" ? "" : prepend + text),
  Precompiled: ({ precompiled_charsmap: map }) => (map ? charsmapOf(map) : (text) => text),
};
for (const form of ["NFC", "NFD", "NFKC", "NFKD"]) kNormalizers[form] = () => (text) => text.normalize(form);
const normalizerOf = (section) => (section ? kNormalizers[section.type](section) : (text) => text);
