// ---- Sampling, as `tzoo generate` does it: temperature, top-k, top-p, min-p. Each keeps the largest logits, so that
// one number tells which are left.
const kSliders = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05, value: 1, text: (v) => (v === 0 ? "0, greedy" : v.toFixed(2)) },
  { name: "top_k", label: "Top-k", min: 0, max: 200, step: 1, value: 0, text: (v) => (v === 0 ? "all" : String(v)) },
  { name: "top_p", label: "Top-p", min: 0.05, max: 1, step: 0.01, value: 1, text: (v) => v.toFixed(2) },
  { name: "min_p", label: "Min-p", min: 0, max: 0.5, step: 0.01, value: 0, text: (v) => v.toFixed(2) },
];
const choices = Object.fromEntries(kSliders.map(({ name, value }) => [name, value]));

// All logits of an answer, the largest first. `part` is the answer, or its `plain` part.
const sortedLogits = (part) => {
  part.sorted ??= (() => {
    const rest = new Float32Array(bytesOf(part.rest).buffer);
    const all = new Float32Array(part.logits.length + rest.length);
    all.set(part.logits);
    all.set(rest, part.logits.length);
    return all.sort().reverse();
  })();
  return part.sorted;
};

// {of(logit): its probability, kept: how many answers are left}
const distribution = (part) => {
  const sorted = sortedLogits(part), { temperature, top_k, top_p, min_p } = choices;
  if (temperature === 0) return { of: (logit) => (logit >= Math.fround(sorted[0]) ? 1 : 0), kept: 1 };
  const mass = (logit) => Math.exp((logit - sorted[0]) / temperature);
  let kept = top_k > 0 ? Math.min(top_k, sorted.length) : sorted.length;
  while (kept < sorted.length && sorted[kept] === sorted[kept - 1]) ++kept;
  const total = (count) => { let sum = 0; for (let i = 0; i < count; ++i) sum += mass(sorted[i]); return sum; };
  if (top_p < 1) {
    const all = total(kept);
    let count = 0, sum = 0;
    while (count < kept && sum < top_p * all) sum += mass(sorted[count++]);
    kept = count;
  }
  if (min_p > 0) { let count = 1; while (count < kept && mass(sorted[count]) >= min_p) ++count; kept = count; }
  const sum = total(kept), least = sorted[kept - 1];
  return { of: (logit) => (Math.fround(logit) >= least ? mass(logit) / sum : 0), kept };
};

// Numbers in [0, 1). With a seed, the same ones in each run.
let random = Math.random;
const seedRandom = (text) => {
  let state = Number.parseInt(text, 10);
  random = Number.isNaN(state) ? Math.random : () => {
    state = (state + 0x9e3779b9) | 0;  // steps of the golden ratio, whose bits are mixed
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
};

// Samples the number of an answer. Only named ones can be appended, so others are drawn again.
const drawn = (answer) => {
  const shares = answer.logits.map(distribution(answer).of);
  let left = random() * shares.reduce((sum, share) => sum + share, 0);
  const at = shares.findIndex((share) => (left -= share) < 0);
  return answer.ids[at < 0 ? 0 : at];
};
