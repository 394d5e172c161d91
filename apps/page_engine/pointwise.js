// ---- What acts on each number or row: norms, activations, the softmax.
// erf by its series near 0 and by a continued fraction for erfc further out.
const erf = (x) => {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17; ++n) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = size;
  for (let n = 60; n > 0; --n) fraction = size + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-size * size) / (Math.sqrt(Math.PI) * fraction));
};
const kActivations = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  silu: (x) => x / (1 + Math.exp(-x)),
  tanh: Math.tanh,
  relu2: (x) => Math.max(0, x) ** 2,
};
// The gate's activation of each gated linear unit.
const kGates = { swiglu: "silu", geglu: "gelu", reglu: "relu", geglu_tanh: "gelu_tanh" };

// rows [count, F], or [count, 2 F] with the gate before the value.
const activated = (rows, name, width) => {
  const act = kActivations[kGates[name] ?? name];
  if (!(name in kGates)) return rows.map(act);
  const count = rows.length / (2 * width), out = new Float32Array(count * width);
  for (let r = 0; r < count; ++r)
    for (let i = 0; i < width; ++i) out[r * width + i] = act(rows[2 * r * width + i]) * rows[(2 * r + 1) * width + i];
  return out;
};

// The norm of each part of as many numbers as the norm's weight has. A norm: {kind, eps, weight, bias}.
const normed = ({ kind, eps, weight, bias }, x) => {
  const width = weight.data.length, out = new Float32Array(x.length), plus = kind === "rms_norm_plus_one" ? 1 : 0;
  for (let at = 0; at < x.length; at += width) {
    let mean = 0, squares = 0;
    if (kind === "layer_norm") for (let i = 0; i < width; ++i) mean += x[at + i] / width;
    for (let i = 0; i < width; ++i) squares += (x[at + i] - mean) ** 2;
    const factor = 1 / Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; ++i)
      out[at + i] = (x[at + i] - mean) * factor * (weight.data[i] + plus) + (bias ? bias.data[i] : 0);
  }
  return out;
};

const softcapped = (x, cap) => (cap > 0 ? Math.tanh(x / cap) * cap : x);
const softmaxInto = (scores, count) => {
  let most = -Infinity, sum = 0;
  for (let i = 0; i < count; ++i) most = Math.max(most, scores[i]);
  for (let i = 0; i < count; ++i) sum += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < count; ++i) scores[i] /= sum;
};
const logSoftmax = (logits) => {
  let most = -Infinity, sum = 0;
  for (const logit of logits) most = Math.max(most, logit);
  for (const logit of logits) sum += Math.exp(logit - most);
  const log = most + Math.log(sum), out = new Float64Array(logits.length);
  for (let i = 0; i < out.length; ++i) out[i] = logits[i] - log;
  return out;
};
