// ---- What one query's weights in one head are computed from, as POST /look sends it.
const floatBytes = (numbers) => new Uint8Array(Float32Array.from(numbers).buffer);

// A head's numbers of a position before their rotation: turned back, which a scaled rotation lengthens twice.
const unrotated = (row, position, rotation) => {
  const out = Float32Array.from(row);
  rotate(out, 0, -position, rotation);
  for (let i = 0; i < 2 * rotation.frequencies.length; ++i) out[i] /= rotation.length ** 2;
  return out;
};
const dotOf = (a, b) => a.reduce((sum, each, i) => sum + each * b[i], 0);

const kEverything = { first: () => 0, end: (_, length) => length, bias: null, softcap: 0 };
const scoresOf = (run, layer, { head, query, crosses }) => {
  const { config, layers } = run.stack, { num_heads: heads, num_kv_heads: kvHeads, head_dim: size, attention_scale: scale } = config;
  const { keys, values } = crosses ? run.crossed[layer] : { keys: run.keys[layer], values: run.values[layer] };
  const count = keys.length, group = Math.floor(head / (heads / kvHeads)) * size;
  const ofGroup = (rows, i) => rows.row(i).subarray(group, group + size);
  const { first, end, bias, softcap } = crosses ? kEverything : selfMask(run.stack, layer, 0);
  const own = (crosses ? run.crossQueries : run.queries)[layer].row(query).subarray(head * size, (head + 1) * size);
  const all = (rows) => floatBytes(Array.from({ length: count }, (_, i) => [...ofGroup(rows, i)]).flat());
  const added = Array.from({ length: count }, (_, i) => (i < first(query) || i >= end(query, count) ? -Infinity : bias?.(head, query, i) ?? 0));
  const weights = added.map((each, i) => softcapped(scale * dotOf(own, ofGroup(keys, i)), softcap) + each);
  softmaxInto(weights, count);
  const answer = { scale, softcap, query: floatBytes(own), keys: all(keys), values: all(values), added: floatBytes(added), weights: floatBytes(weights) };
  const { rotation } = layers[layer];
  if (crosses || !rotation) return answer;
  const before = unrotated(own, query, rotation);
  return { ...answer, unrotated: floatBytes(added.map((_, i) => dotOf(before, unrotated(ofGroup(keys, i), i, rotation)))) };
};
