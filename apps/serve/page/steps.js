// ---- From a query to its head's output (Vaswani et al., 2017, section 3.2.1), recomputed from what the model has sent: the
// query, the head's keys and values, the scale, the softcap, and what is added to each score (-Infinity hides a key).
const floatsOf = (sent) => new Float32Array(bytesOf(sent).buffer);
const dotOf = (a, b) => { let sum = 0; for (let i = 0; i < a.length; ++i) sum += a[i] * b[i]; return sum; };

const headSteps = (sent) => {
  const { scale, softcap } = sent, query = floatsOf(sent.query), added = floatsOf(sent.added), weights = floatsOf(sent.weights);
  const rowsOf = (numbers) => Array.from(added, (_, i) => numbers.subarray(i * query.length, (i + 1) * query.length));
  const keys = rowsOf(floatsOf(sent.keys)), values = rowsOf(floatsOf(sent.values));
  const dots = keys.map((key) => dotOf(query, key)), scaled = dots.map((dot) => dot * scale);
  const capped = softcap > 0 ? scaled.map((score) => softcap * Math.tanh(score / softcap)) : scaled;
  const biased = capped.map((score, i) => (added[i] === -Infinity ? score : score + added[i]));
  const scores = biased.map((score, i) => (added[i] === -Infinity ? -Infinity : score));
  // exp() of the scores as they are can be followed on a calculator; far from 0 the largest is taken off first.
  const most = Math.max(...scores), shift = Math.abs(most) > 50 ? most : 0;
  const powers = scores.map((score) => Math.exp(score - shift)), sum = powers.reduce((total, each) => total + each, 0);
  const shares = powers.map((power) => power / sum);
  const output = Array.from(query, (_, d) => values.reduce((total, value, i) => total + shares[i] * value[d], 0));
  return { query, keys, values, scale, softcap, added, weights, dots, scaled, capped, biased, scores, shift, powers, sum, shares, output,
    unrotated: sent.unrotated ? floatsOf(sent.unrotated) : null };
};
