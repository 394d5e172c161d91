// ---- Scaled dot-product attention (Vaswani et al., 2017) of the next positions to all before and, in an encoder, to all.
const keysAndValues = (both, width) => {
  const keys = new Rows(width), values = new Rows(width);
  for (let at = 0; at < both.length; at += 2 * width) {
    keys.push(both.subarray(at, at + width));
    values.push(both.subarray(at + width, at + 2 * width));
  }
  return { keys, values };
};

// Normed and rotated, of the rows x whose first is at position `past`.
const queriesKeysValues = ({ config, layers }, layer, x, past) => {
  const parts = layers[layer], size = config.head_dim, heads = config.num_heads, kvHeads = config.num_kv_heads;
  const all = linear(parts["attention.qkv"], x), count = x.length / config.hidden_size, width = (heads + 2 * kvHeads) * size;
  const slice = (from, many) => {
    const out = new Float32Array(count * many * size);
    for (let r = 0; r < count; ++r) out.set(all.subarray(r * width + from * size, r * width + (from + many) * size), r * many * size);
    return out;
  };
  let q = slice(0, heads), k = slice(heads, kvHeads);
  if (parts["attention.query_norm"]) {
    q = normed(parts["attention.query_norm"], q);
    k = normed(parts["attention.key_norm"], k);
  }
  if (parts.rotation) {
    for (const [rows, many] of [[q, heads], [k, kvHeads]])
      for (let h = 0; h < count * many; ++h) rotate(rows, h * size, past + Math.floor(h / many), parts.rotation);
  }
  return { q, k, v: slice(heads + kvHeads, kvHeads) };
};

// The keys that a query sees, from first(query) to end(query), and what is added to its scores.
const selfMask = ({ config, layers, buckets, slopes }, layer, past) => {
  const causal = config.shape === "decoder", window = hasWindow(config, layer) ? config.sliding_window : 0;
  const reach = window === 0 ? Infinity : causal ? window - 1 : Math.floor(window / 2);
  const table = (layers[layer]["attention.position_bias"] ?? buckets)?.weight;
  const bias = table ? (head, query, key) => table.data[bucketOf(key - query, config, !causal) * table.columns + head]
    : config.position === "alibi" ? (head, query, key) => -Math.abs(key - query) * slopes[head] : null;
  return { past, bias, softcap: config.attention_softcap, first: (query) => Math.max(0, query - reach),
    end: (query, length) => Math.min(length, (causal ? query : query + reach) + 1) };
};

// The heads' outputs [count, H D]. onRow gets a query's weights: as bytes [H, S], 255 for 1, and their mean over the heads.
const attended = ({ config }, q, keys, values, { past = 0, bias = null, softcap, first, end, onRow }) => {
  const { num_heads: heads, num_kv_heads: kvHeads, head_dim: size, attention_scale: scale } = config;
  const count = q.length / (heads * size), out = new Float32Array(q.length), width = kvHeads * size;
  const scores = new Float64Array(keys.length), all = keys.data, read = values.data;
  for (let r = 0; r < count; ++r) {
    const query = past + r, from = first(query), to = end(query, keys.length);
    const length = config.shape === "decoder" ? to : keys.length;  // later keys of a decoder are unknown yet
    const levels = new Uint8Array(heads * length), mean = new Float32Array(length);
    for (let h = 0; h < heads; ++h) {
      const at = (r * heads + h) * size, kv = Math.floor(h / (heads / kvHeads)) * size;
      for (let key = from; key < to; ++key) {
        let sum = 0;
        for (let i = 0, place = key * width + kv; i < size; ++i) sum += all[place + i] * q[at + i];
        const score = softcapped(sum * scale, softcap);
        scores[key - from] = bias ? score + bias(h, query, key) : score;
      }
      softmaxInto(scores, to - from);
      for (let key = from; key < to; ++key) {
        const weight = scores[key - from], place = key * width + kv;
        levels[h * length + key] = Math.round(weight * 255);
        mean[key] += weight / heads;
        for (let i = 0; i < size; ++i) out[at + i] += weight * read[place + i];
      }
    }
    onRow({ levels, mean });
  }
  return out;
};
