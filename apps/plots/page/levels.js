// ---- Levels 0 to 255 as attention_page.cpp writes them: after a 0 stands how many there are.
const decodedLevels = (bytes, count, { rows, columns, causal }) => {
  const levels = new Uint8Array(count);
  let next = 0, zeros = 0;
  for (let i = 0; i < count; ++i) {
    if (causal && i % columns > Math.floor(i / columns) % rows) continue;
    if (zeros === 0 && bytes[next] === 0) {
      zeros = bytes[next + 1];
      next += 2;
    }
    if (zeros > 0) --zeros;
    else levels[i] = bytes[next++];
  }
  return levels;
};
