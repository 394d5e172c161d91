// ---- Levels 0 to 255 as attention_page.cpp writes them: differences to the row above; after a 0 stands how many there are.
const decodedLevels = (bytes, count, { rows, columns, causal }) => {
  const levels = new Uint8Array(count);
  let next = 0, zeros = 0;
  for (let i = 0; i < count; ++i) {
    const row = Math.floor(i / columns) % rows;
    if (causal && i % columns > row) continue;
    if (zeros === 0 && bytes[next] === 0) {
      zeros = bytes[next + 1];
      next += 2;
    }
    levels[i] = row > 0 ? levels[i - columns] : 0;
    if (zeros > 0) --zeros;
    else levels[i] += bytes[next++];
  }
  return levels;
};
