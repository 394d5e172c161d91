// ---- Levels 0 to 255 as level_coder.cpp writes them: an adaptive binary range coder.
const decodedLevels = (bytes, count, { rows, columns, causal }) => {
  const above0 = new Uint16Array(16).fill(1024), above1 = new Uint16Array(16).fill(1024), bits = new Uint16Array(1024).fill(1024);
  const levels = new Uint8Array(count), size = rows * columns;
  let range = 0xffffffff, code = 0, next = 1;
  for (let i = 0; i < 4; ++i) code = ((code << 8) | bytes[next++]) >>> 0;
  const read = (zero, at) => {
    const bound = (range >>> 11) * zero[at];
    const bit = code < bound ? 0 : 1;
    if (bit === 0) {
      range = bound;
      zero[at] += (2048 - zero[at]) >> 4;
    } else {
      code -= bound;
      range -= bound;
      zero[at] -= zero[at] >> 4;
    }
    while (range < 16777216) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | bytes[next++]) >>> 0;
    }
    return bit;
  };
  const sizeOf = (level) => (level < 2 ? level : level < 8 ? 2 : 3);
  const level = (left, above) => {
    const near = 4 * left + above;
    if (read(above0, near) === 0) return 0;
    if (read(above1, near) === 0) return 1;
    const tree = 256 * Math.max(left, above);
    let node = 1;
    while (node < 256) node = 2 * node + read(bits, tree + node);
    return node - 256;
  };
  for (let begin = 0; begin < count; begin += size) {
    for (let row = 0; row < rows; ++row) {
      const at = begin + row * columns, end = causal ? Math.min(row + 1, columns) : columns;
      let left = 0;
      for (let column = 0; column < end; ++column) {
        left = sizeOf((levels[at + column] = level(left, row > 0 ? sizeOf(levels[at + column - columns]) : 0)));
      }
    }
  }
  return levels;
};
