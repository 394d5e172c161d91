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
  const square = map.kind !== "cross";
  return { entropy, first, itself: square ? along(0) : null, previous: square ? along(-1) : null, next: square ? along(1) : null };
};
