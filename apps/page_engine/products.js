// ---- Products of a matrix with rows, in float64 sums of float32. int8 weights are multiplied as they are; the sum has the
// scale of its row. Several sums at once, which share what is loaded, are twice as fast as one.
const oneRow = ({ rows, columns, data, scales }, bias, x, from, out, to) => {
  const put = (r, sum) => { out[to + r] = (scales ? sum * scales[r] : sum) + (bias ? bias[r] : 0); };
  let r = 0;
  for (; r + 4 <= rows; r += 4) {
    const first = r * columns, second = first + columns, third = second + columns, fourth = third + columns;
    let a = 0, b = 0, c = 0, d = 0;
    for (let i = 0; i < columns; ++i) {
      const value = x[from + i];
      a += data[first + i] * value;
      b += data[second + i] * value;
      c += data[third + i] * value;
      d += data[fourth + i] * value;
    }
    put(r, a);
    put(r + 1, b);
    put(r + 2, c);
    put(r + 3, d);
  }
  for (; r < rows; ++r) {
    let sum = 0;
    for (let i = 0; i < columns; ++i) sum += data[r * columns + i] * x[from + i];
    put(r, sum);
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
