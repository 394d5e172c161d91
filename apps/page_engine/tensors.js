// ---- The file's weights. A matrix has its rows one after the other: float32, or int8 with a scale for each row.
const tensorsOf = (listed, buffer) => new Map(listed.map(({ name, shape, type, at }) => {
  const columns = shape.at(-1), rows = shape.slice(0, -1).reduce((product, size) => product * size, 1), size = rows * columns;
  if (type === "float32") return [name, { rows, columns, data: new Float32Array(buffer, at, size), scales: null }];
  const scales = new Float32Array(buffer, at + 4 * Math.ceil(size / 4), rows);
  return [name, { rows, columns, data: new Int8Array(buffer, at, size), scales }];
}));

// A row of a matrix in float32.
const rowOf = ({ columns, data, scales }, row) => {
  const out = Float32Array.from(data.subarray(row * columns, (row + 1) * columns));
  if (scales) for (let i = 0; i < columns; ++i) out[i] *= scales[row];
  return out;
};

// Rows of one width that grow at the end: the states, keys and values of a run.
class Rows {
  constructor(width) {
    this.width = width;
    this.length = 0;
    this.data = new Float32Array(16 * width);
  }
  push(rows) {
    const end = this.length * this.width + rows.length;
    if (end > this.data.length) {
      const larger = new Float32Array(Math.max(end, 2 * this.data.length));
      larger.set(this.data.subarray(0, this.length * this.width));
      this.data = larger;
    }
    this.data.set(rows, this.length * this.width);
    this.length = end / this.width;
  }
  row(i) {
    return this.data.subarray(i * this.width, (i + 1) * this.width);
  }
}
