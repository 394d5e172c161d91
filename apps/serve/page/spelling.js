// ---- Byte-level vocabularies (Radford et al., 2019) write each byte as a letter: "Ġgato" is " gato", "Ã¡" is "á". Encoders and
// encoder-decoders are sent tokens as their vocabulary writes them; the page shows them as text.
const kByteOf = (() => {
  const own = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 0;
  return new Map(Array.from({ length: 256 }, (_, byte) => [String.fromCodePoint(own(byte) ? byte : 256 + others++), byte]));
})();
const bytesSpelled = (name) => Uint8Array.from([...name], (letter) => kByteOf.get(letter) ?? -1);
const isSpelled = (name) => [...name].every((letter) => kByteOf.has(letter));
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");

// Found where a text's tokens have other letters than bytes, and each is the bytes that its letters write.
const spelling = new Set();
const isByteLevel = (model, tokens) => {
  const others = tokens.filter(({ token, bytes }) => hexOf(new TextEncoder().encode(token)) !== bytes && bytes !== "");
  if (others.length > 0 && others.every(({ token, bytes }) => isSpelled(token) && hexOf(bytesSpelled(token)) === bytes)) spelling.add(model);
  return spelling.has(model);
};
const spelledOut = (name) => (isSpelled(name) ? new TextDecoder().decode(bytesSpelled(name)) : name);

// Replaces the names in an answer of POST /look.
const spellOut = (seen) => {
  if (!isByteLevel(seen.model, [...seen.tokens, ...(seen.written ?? [])])) return seen;
  for (const each of [...seen.tokens, ...(seen.written ?? [])]) each.token = spelledOut(each.token);
  for (const each of (seen.lens ?? []).flatMap(({ answers }) => answers)) each.name = spelledOut(each.name);
  if (seen.answer?.kind === "token") seen.answer.names = seen.answer.names.map(spelledOut);
  return seen;
};
