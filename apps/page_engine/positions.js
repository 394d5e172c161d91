// ---- Positions: sinusoids, rotations, T5's buckets, ALiBi's slopes.
const sinusoid = (position, width, order) => {
  const out = new Float32Array(width), half = width / 2;
  for (let i = 0; i < half; ++i) {
    const angle = position * (order === "fairseq" ? Math.exp(i * -(Math.log(10000) / (half - 1))) : 10000 ** (-2 * i / width));
    out[order === "interleaved" ? 2 * i : i] = Math.sin(angle);
    out[order === "interleaved" ? 2 * i + 1 : half + i] = Math.cos(angle);
  }
  return out;
};

// Scaled for contexts that are longer than in training (RopeScalingKind): "linear FACTOR", "llama3 FACTOR LOW HIGH ORIGINAL" or
// "yarn FACTOR FAST SLOW ATTENTION ORIGINAL [untruncated]".
const scaledFrequencies = (frequencies, base, scaling) => {
  const [kind, factor, ...numbers] = scaling.split(" "), between = (share) => Math.min(1, Math.max(0, share));
  const mixed = (kept) => frequencies.map((frequency, i) => (frequency / factor) * (1 - kept(frequency, i)) + frequency * kept(frequency, i));
  if (kind === "linear") return mixed(() => 0);
  if (kind === "llama3") {
    const [low, high, original] = numbers.map(Number);
    return mixed((frequency) => between(((frequency * original) / (2 * Math.PI) - low) / (high - low)));
  }
  if (kind !== "yarn") return frequencies;
  const [fast, slow, , original] = numbers.map(Number), pairs = frequencies.length, rounds = numbers[4] !== "untruncated";
  const pairOf = (turns) => (pairs * Math.log(original / (turns * 2 * Math.PI))) / Math.log(base);
  const low = Math.max(0, rounds ? Math.floor(pairOf(fast)) : pairOf(fast)), high = Math.min(2 * pairs - 1, rounds ? Math.ceil(pairOf(slow)) : pairOf(slow));
  return mixed((_, i) => 1 - between((i - low) / (high === low ? 0.001 : high - low)));
};
// Of a layer: a frequency for each pair of numbers of a head, and the length of what is rotated.
const rotationOf = (config, layer) => {
  const size = config.rotary_dim || config.head_dim, own = hasWindow(config, layer) && config.window_rope_theta > 0;
  const base = own ? config.window_rope_theta : config.rope_theta, scaling = own ? "none" : config.rope_scaling;
  const frequencies = scaledFrequencies(Float32Array.from({ length: size / 2 }, (_, i) => 1 / base ** ((2 * i) / size)), base, scaling);
  return { frequencies, length: scaling.startsWith("yarn") ? Number(scaling.split(" ")[4]) : 1 };
};
const rotate = (x, at, position, { frequencies, length }) => {
  const half = frequencies.length;
  for (let i = 0; i < half; ++i) {
    const angle = Math.fround(position * frequencies[i]), cosine = length * Math.cos(angle), sine = length * Math.sin(angle);
    const first = x[at + i], second = x[at + half + i];
    x[at + i] = first * cosine - second * sine;
    x[at + half + i] = second * cosine + first * sine;
  }
};

const bucketOf = (distance, { relative_buckets: buckets, relative_max_distance: farthest }, both) => {
  const count = both ? Math.floor(buckets / 2) : buckets, exact = Math.floor(count / 2);
  const length = both ? Math.abs(distance) : Math.max(0, -distance), later = both && distance > 0 ? count : 0;
  if (length < exact) return later + length;
  // Rounded to float32 in this order, so that a distance at a bucket's edge falls on the side of T5's code.
  const ranges = Math.log(farthest / exact), logarithm = Math.fround(Math.log(Math.fround(length / exact)));
  const far = Math.floor(Math.fround(Math.fround(logarithm / ranges) * (count - exact))) + exact;
  return later + Math.min(far, count - 1);
};

const alibiSlopes = (heads) => {
  const power = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, i) => 2 ** (i < power ? (-8 * (i + 1)) / power : (-4 * (2 * (i - power) + 1)) / power));
};

const flagOf = (flags, layer) => flags === "" || flags[layer] === "1";  // "0101", or "": all
const hasWindow = (config, layer) => config.sliding_window > 0 && flagOf(config.window_layers, layer);
