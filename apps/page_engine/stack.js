// ---- A stack of blocks (Vaswani et al., 2017), as a run over one sequence. A decoder's run can grow: its keys, values and
// states stay, so that one more token costs one row. See models/layers/block.h for the placements of the norms.
const makeStack = (tensors, prefix, config) => {
  const part = (name) => {
    const weight = tensors.get(`${prefix}${name}.weight`);
    return weight && { weight, bias: tensors.get(`${prefix}${name}.bias`) };
  };
  const norm = (name) => part(name) && { kind: config.norm, eps: config.layer_norm_eps, ...part(name) };
  const layers = Array.from({ length: config.num_layers }, (_, layer) => {
    const own = `blocks.${config.sharing === "all_layers" ? 0 : layer}.`;
    const made = { rotation: null };
    for (const name of ["attention_norm", "attention.query_norm", "attention.key_norm", "cross_attention_norm", "feed_forward_norm",
      "attention_end_norm", "feed_forward_end_norm"]) made[name] = norm(own + name);
    for (const name of ["attention.qkv", "attention.out", "cross_attention.q", "cross_attention.kv", "cross_attention.out",
      "feed_forward.up", "feed_forward.down", "attention.position_bias"]) made[name] = part(own + name);
    if (config.position === "rotary" && flagOf(config.rotary_layers, layer)) made.rotation = rotationOf(config, layer);
    return made;
  });
  return { config, layers, finalNorm: norm("final_norm"), buckets: part("position_bias"), slopes: alibiSlopes(config.num_heads) };
};

class StackRun {
  // `changes` of this stack; `memory` is the encoder's output for a decoder that reads one.
  constructor(stack, { changes = [], memory = null, records = false } = {}) {
    Object.assign(this, { stack, changes, memory });
    const { config } = stack, width = config.hidden_size, heads = config.num_heads * config.head_dim;
    const rows = (size) => stack.layers.map(() => new Rows(size));
    this.stream = [...rows(width), new Rows(width)];  // before each block, and after the last
    this.queries = rows(heads);
    this.crossQueries = rows(heads);
    this.keys = rows(config.num_kv_heads * config.head_dim);
    this.values = rows(config.num_kv_heads * config.head_dim);
    this.crossed = stack.layers.map(() => null);
    this.maps = stack.layers.map(() => []);       // by query: weights of all heads, as bytes
    this.crossMaps = stack.layers.map(() => []);
    this.rollout = stack.layers.map(() => []);    // by query (Abnar and Zuidema, 2020)
    this.norms = stack.layers.map(() => ({}));  // by name: the states that each norm has read
    this.fed = rows(width);                      // what the feed-forward networks have read
    const parts = { attention: width, cross_attention: width, feed_forward: width, residual: width, attention_heads: heads, cross_attention_heads: heads };
    this.recorded = records && stack.layers.map(() => Object.fromEntries(Object.entries(parts).map(([part, size]) => [part, new Rows(size)])));
  }
  get length() {
    return this.stream[0].length;
  }
  // Forgets all after the first `length` positions.
  cut(length) {
    for (const rows of [...this.stream, ...this.queries, ...this.crossQueries, ...this.keys, ...this.values, ...this.fed, ...this.norms.flatMap(Object.values)]) rows.length = length;
    for (const lists of [this.maps, this.crossMaps, this.rollout]) for (const list of lists) list.length = length;
  }

  // Runs the embeddings [count, C] of the next positions.
  extend(embeddings) {
    const past = this.length;
    let x = embeddings;
    this.stack.layers.forEach((_, layer) => {
      this.stream[layer].push(x);
      x = this.block(layer, x, past);
    });
    this.stream.at(-1).push(x);
  }

  block(layer, x, past) {
    const { config } = this.stack, parts = this.stack.layers[layer], input = x;
    const attend = (y) => this.attention(layer, y, past), feed = (y) => this.feedForward(layer, y);
    if (config.sublayer_order === "sequential") {
      x = this.sublayer(layer, "attention", x, past, attend);
      if (this.memory) x = this.sublayer(layer, "cross_attention", x, past, (y) => this.crossAttention(layer, y, past));
      x = this.sublayer(layer, "feed_forward", x, past, feed);
    } else {  // both sublayers read the block's input
      const both = this.normed(layer, "attention_norm", x);
      const attended = this.added(layer, "attention", x, past, attend(both), "attention_end_norm");
      const read = parts.feed_forward_norm ? this.normed(layer, "feed_forward_norm", x) : both;
      x = this.added(layer, "feed_forward", attended, past, feed(read), "feed_forward_end_norm");
    }
    for (const change of this.changes.filter(isOn(layer, "residual", null))) replaceIn(x, config.hidden_size, past, change, { input });
    this.record(layer, "residual", x);
    return x;
  }

  sublayer(layer, part, x, past, run) {
    const { norm_placement: placement } = this.stack.config, norm = `${part}_norm`;
    if (placement === "post") return this.normed(layer, norm, this.added(layer, part, x, past, run(x), null));
    if (placement === "branch_end") return this.added(layer, part, x, past, run(x), norm);
    return this.added(layer, part, x, past, run(this.normed(layer, norm, x)), `${part}_end_norm`);
  }
  // What the norm with this name gives; without one, the same.
  normed(layer, name, x) {
    const norm = this.stack.layers[layer][name];
    if (!norm) return x;
    (this.norms[layer][name] ??= new Rows(this.stack.config.hidden_size)).push(x);
    return normed(norm, x);
  }
  // residual + output, whose norm, scale and changes come before.
  added(layer, part, residual, past, output, endNorm) {
    const { residual_scale: scale, hidden_size: width } = this.stack.config;
    if (endNorm) output = this.normed(layer, endNorm, output);
    if (scale !== 1) output = output.map((value) => value * scale);
    for (const change of this.changes.filter(isOn(layer, part, null))) replaceIn(output, width, past, change, {});
    this.record(layer, part, output);
    return output.map((value, i) => residual[i] + value);
  }
  record(layer, part, rows) {
    if (this.recorded) this.recorded[layer][part].push(rows);
  }

  feedForward(layer, x) {
    this.fed[layer].push(x);
    return linear(this.stack.layers[layer]["feed_forward.down"], this.neurons(layer, x));
  }
  neurons(layer, x) {
    const { activation, intermediate_size: width } = this.stack.config;
    return activated(linear(this.stack.layers[layer]["feed_forward.up"], x), activation, width);
  }
  // The heads' outputs [count, H D], after their changes, projected.
  projected(layer, part, heads, past) {
    const { num_heads: count, head_dim: size } = this.stack.config;
    for (const change of this.changes.filter(isOn(layer, part, 0))) replaceIn(heads, count * size, past, change, { size });
    this.record(layer, `${part}_heads`, heads);
    return linear(this.stack.layers[layer][`${part}.out`], heads);
  }
  attention(layer, x, past) {
    const { q, k, v } = queriesKeysValues(this.stack, layer, x, past);
    this.queries[layer].push(q);
    this.keys[layer].push(k);
    this.values[layer].push(v);
    const heads = attended(this.stack, q, this.keys[layer], this.values[layer], {
      ...selfMask(this.stack, layer, past), onRow: (weights) => this.sawSelf(layer, weights) });
    return this.projected(layer, "attention", heads, past);
  }
  crossAttention(layer, x, past) {
    const parts = this.stack.layers[layer], { num_kv_heads: count, head_dim: size } = this.stack.config;
    this.crossed[layer] ??= keysAndValues(linear(parts["cross_attention.kv"], this.memory), count * size);
    const { keys, values } = this.crossed[layer], all = { first: () => 0, end: () => keys.length, softcap: 0 };
    const q = linear(parts["cross_attention.q"], x);
    this.crossQueries[layer].push(q);
    const heads = attended(this.stack, q, keys, values, {
      ...all, onRow: ({ levels }) => this.crossMaps[layer].push(levels) });
    return this.projected(layer, "cross_attention", heads, past);
  }
  // The rollout's row is half the mean of the heads applied to the rows below, half its own row below.
  sawSelf(layer, { levels, mean }) {
    const query = this.maps[layer].push(levels) - 1, below = layer > 0 ? this.rollout[layer - 1] : null;
    const row = new Float32Array(mean.length);
    if (below) mean.forEach((weight, key) => { for (let i = 0; i < below[key].length; ++i) row[i] += (weight * below[key][i]) / 2; });
    else for (let i = 0; i < row.length; ++i) row[i] = mean[i] / 2;
    if (below) for (let i = 0; i < below[query].length; ++i) row[i] += below[query][i] / 2;
    else row[query] += 0.5;
    this.rollout[layer].push(row);
  }
}
