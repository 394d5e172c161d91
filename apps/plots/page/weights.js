// ---- Attention weights, one byte each: [heads][queries][keys]. A server sends bytes as base64.
const bytesOf = (sent) => (sent instanceof Uint8Array ? sent : Uint8Array.from(atob(sent), (letter) => letter.charCodeAt(0)));

// One head, or the mean of all (head -1), as a function of query and key.
const headOf = (map, head) => {
  const size = map.queries.length * map.keys.length, keys = map.keys.length;
  if (head >= 0) return (query, key) => map.values[head * size + query * keys + key] / 255;
  const mean = new Float32Array(size);
  for (let i = 0; i < map.values.length; ++i) mean[i % size] += map.values[i] / (255 * map.heads);
  return (query, key) => mean[query * keys + key];
};

// How closely a head follows a pattern: the mean weight of a kind of key.
const patternsOf = (map, head) => {
  const weight = headOf(map, head), queries = map.queries.length, keys = map.keys.length;
  const along = (offset) => {
    let sum = 0, count = 0;
    for (let q = Math.max(0, -offset); q < queries && q + offset < keys; ++q, ++count) sum += weight(q, q + offset);
    return count > 0 ? sum / count : null;
  };
  let entropy = 0, first = 0;
  for (let q = 0; q < queries; ++q) {
    first += weight(q, 0) / queries;
    for (let k = 0; k < keys; ++k) if (weight(q, k) > 0) entropy -= weight(q, k) * Math.log2(weight(q, k)) / queries;
  }
  // Of the queries whose token stood before: the weight of its earlier places, or of the places after these.
  const afterRepeats = (offset) => {
    let sum = 0, repeated = 0;
    for (let q = 0; q < queries; ++q) {
      const before = Array.from({ length: q }, (_, k) => k).filter((k) => map.keys[k] === map.queries[q]);
      for (const k of before) sum += weight(q, k + offset);
      if (before.length > 0) ++repeated;
    }
    return repeated > 0 ? sum / repeated : null;
  };
  const ofSelf = (share, offset) => (map.kind !== "cross" ? share(offset) : null);
  return { entropy, first, itself: ofSelf(along, 0), previous: ofSelf(along, -1), next: ofSelf(along, 1), duplicate: ofSelf(afterRepeats, 0),
    induction: ofSelf(afterRepeats, 1) };
};
