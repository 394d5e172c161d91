// ---- Products of a matrix with rows, in float64 sums of float32. int8 weights are multiplied as they are; the sum has the
// scale of its row. Four rows share each weight that is loaded.
const dot = (data, at, x, from, columns) => {
  let a = 0, b = 0, c = 0, d = 0, i = 0;
  for (; i + 4 <= columns; i += 4) {
    a += data[at + i] * x[from + i];
    b += data[at + i + 1] * x[from + i + 1];
    c += data[at + i + 2] * x[from + i + 2];
    d += data[at + i + 3] * x[from + i + 3];
  }
  for (; i < columns; ++i) a += data[at + i] * x[from + i];
  return a + b + (c + d);
};
const oneRow = ({ rows, columns, data, scales }, bias, x, from, out, to) => {
  for (let r = 0; r < rows; ++r) {
    const sum = dot(data, r * columns, x, from, columns);
    out[to + r] = (scales ? sum * scales[r] : sum) + (bias ? bias[r] : 0);
  }
};
const fourRows = ({ rows, columns, data, scales }, bias, x, from, out, to) => {
  const second = from + columns, third = second + columns, fourth = third + columns;
  for (let r = 0; r < rows; ++r) {
    const at = r * columns, scale = scales ? scales[r] : 1, more = bias ? bias[r] : 0;
    let a = 0, b = 0, c = 0, d = 0;
    for (let i = 0; i < columns; ++i) {
      const weight = data[at + i];
      a += weight * x[from + i];
      b += weight * x[second + i];
      c += weight * x[third + i];
      d += weight * x[fourth + i];
    }
    out[to + r] = a * scale + more;
    out[to + rows + r] = b * scale + more;
    out[to + 2 * rows + r] = c * scale + more;
    out[to + 3 * rows + r] = d * scale + more;
  }
};

// x [count, columns] to [count, rows].
const linear = ({ weight, bias }, x) => {
  const { rows, columns } = weight, count = x.length / columns, out = new Float32Array(count * rows), more = bias?.data ?? null;
  let row = 0;
  for (; row + 4 <= count; row += 4) fourRows(weight, more, x, row * columns, out, row * rows);
  for (; row < count; ++row) oneRow(weight, more, x, row * columns, out, row * rows);
  return out;
};
