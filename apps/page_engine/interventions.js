// ---- Parts of a run that are replaced: off, their mean, or another run's. A change has {stack, layer, part, head, values,
// positions}: `values` rows that replace the part's at `positions`, one for all or one each; null is zeros, and for the
// residual stream, the block's input. `head` is null for a whole part, `positions` null for all.
const isOn = (layer, part, head) => (change) => change.layer === layer && change.part === part && (change.head === null) === (head === null);

// rows [count, width] of the positions from `past` on; a head's numbers begin at its number times its size.
const replaceIn = (rows, width, past, change, { size = width, input = null }) => {
  const begin = change.head === null ? 0 : change.head * size, each = change.values && change.values.length > size;
  for (let r = 0; r < rows.length / width; ++r) {
    const position = past + r, index = change.positions ? change.positions.indexOf(position) : position;
    if (index < 0) continue;
    for (let i = 0; i < size; ++i) {
      const off = input ? input[r * width + i] : 0;
      rows[r * width + begin + i] = change.values ? change.values[(each ? index * size : 0) + i] : off;
    }
  }
};

// A recorded part, or one head of it, [count, size]; and the mean of its rows.
const partOf = ({ recorded }, { layer, part, head }, size) => {
  const name = head === null ? part : `${part}_heads`, rows = recorded[layer][name], out = new Float32Array(rows.length * size);
  for (let r = 0; r < rows.length; ++r) out.set(rows.row(r).subarray((head ?? 0) * size, (head ?? 0) * size + size), r * size);
  return out;
};
const meanRow = (values, size) => {
  const mean = new Float64Array(size);
  for (let i = 0; i < values.length; ++i) mean[i % size] += values[i];
  return Float32Array.from(mean, (sum) => sum / (values.length / size));
};
