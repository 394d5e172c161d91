// ---- Answers of POST /look, with the fields and the errors of `tzoo serve` (apps/serve/endpoints/look.cpp).
const kMostTokens = 1024, kNamed = 200, kLensAnswers = 5;
const refuse = (param, text) => { throw Object.assign(new Error(`'${param}' ${text}`), { param }); };
const numberBelow = (param, value, count) => {
  if (value === undefined) return null;
  if (!Number.isInteger(value) || value < 0 || value >= count) refuse(param, `must be from 0 to ${count - 1}`);
  return value;
};
// Indices of the largest numbers, in their order; of equal ones the first.
const largest = (numbers, count) => {
  const best = [];
  for (let i = 0; i < numbers.length; ++i) {
    if (best.length === count && numbers[i] <= numbers[best[count - 1]]) continue;
    let place = best.length;
    while (place > 0 && numbers[best[place - 1]] < numbers[i]) --place;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
};
const bitsBetween = (of, from) => of.reduce((sum, log, i) => sum + (log === -Infinity ? 0 : Math.exp(log) * (log - from[i])), 0) / Math.LN2;

class Looker {
  constructor(header, model, tokenizer) {
    Object.assign(this, { header, model, tokenizer, runs: new ModelRuns(model) });
  }
  get most() {
    const { config } = this.model, table = ["learned", "sinusoidal"].includes(config.position);
    const counted = config.position_count === "not_padding" && config.position === "learned" ? config.pad_token_id + 1 : 0;
    return table ? Math.min(kMostTokens, config.max_positions - counted) : kMostTokens;
  }
  check(param, count) {
    if (count > 0 && count <= this.most) return;
    const fault = count === 0 ? "the text is empty" : `${count} tokens, but at most ${this.most} are read`;
    throw Object.assign(new Error(`'${param}': ${fault}`), { param, tokens: count, limit: this.most });
  }
  read(param, { text, text_pair: second, target, append = [] }) {
    if (typeof text !== "string") refuse(param, "is missing");
    const { pair, config } = this.model, encoder = config.shape === "encoder";
    if (second !== undefined && !encoder) refuse("text_pair", "is for an encoder");
    if (target !== undefined && !pair) refuse("target", "is for an encoder-decoder");
    if (append.length > 0 && encoder) refuse("append", "needs a decoder, which reads one token after another");
    for (const id of append) if (!(id >= 0 && id < config.vocab_size)) refuse("append", "has an id outside the vocabulary");
    const { ids, types } = this.tokenizer.encode(text, second);
    const inputs = { ids: pair ? ids : [...ids, ...append], types, written: null };
    this.check(param, inputs.ids.length);
    if (!pair) return inputs;
    inputs.written = [this.header.decoder_start, ...this.tokenizer.ids(target ?? ""), ...append];
    this.check("target", inputs.written.length);
    return inputs;
  }
  positionOf({ ids, written }, chosen) {
    const length = (written ?? ids).length, mask = this.header.head === "masked-lm" ? ids.indexOf(this.header.mask_id) : -1;
    const position = numberBelow("position", chosen, length);
    return position ?? (mask >= 0 ? mask : length - 1);
  }
  stackOf(name) {
    const { pair, stacks, headStack } = this.model;
    if (name !== undefined && !Object.hasOwn(stacks, name)) refuse("stack", "names a stack that the model lacks");
    return pair && name ? stacks[name] : headStack;
  }

  // ---- What is off or patched, as changes of a run.
  off({ layers = [], sublayers = [], heads = [], cross_heads = [] }, { config }) {
    const site = (param, text, part, withHead) => {
      const [layer, rest] = text.split("."), named = part ?? rest;
      numberBelow(param, Number(layer), config.num_layers);
      if (withHead) numberBelow(param, Number(rest), config.num_heads);
      if (!["residual", "attention", "cross_attention", "feed_forward"].includes(named) || (named === "cross_attention" && !this.hasCross(config)))
        refuse(param, `${text}: the model has no such part`);
      return { stack: config.shape, layer: Number(layer), part: named, head: withHead ? Number(rest) : null, values: null, positions: null };
    };
    return [...layers.map((text) => site("layers", text, "residual", false)), ...sublayers.map((text) => site("sublayers", text, null, false)),
      ...heads.map((text) => site("heads", text, "attention", true)), ...cross_heads.map((text) => site("cross_heads", text, "cross_attention", true))];
  }
  hasCross({ shape }) {
    return this.model.pair && shape === "decoder";
  }
  valuesOf(runs, change) {
    const { hidden_size: width, head_dim: size } = this.model.config;
    return partOf(runs[change.stack], change, change.head === null ? width : size);
  }
  withMeans(changes, inputs) {
    if (changes.some(({ part }) => part === "residual")) refuse("with", "cannot be mean for a whole layer, which passes its input on");
    const runs = this.runs.run(inputs, { records: true }), { hidden_size: width, head_dim: size } = this.model.config;
    return changes.map((change) => ({ ...change, values: meanRow(this.valuesOf(runs, change), change.head === null ? width : size) }));
  }
  patch(fields, inputs, { config }) {
    const { patch_text: text, patch_part: kind = "residual", patch_layer: layer, patch_head: head, patch_positions: positions } = fields;
    if (text === undefined) return [];
    const ofHead = kind.endsWith("head"), part = kind === "head" ? "attention" : kind === "cross_head" ? "cross_attention" : kind;
    if (layer === undefined) refuse("patch_layer", "is missing: the layer whose state is taken");
    numberBelow("patch_layer", layer, config.num_layers);
    if (ofHead) numberBelow("patch_head", head, config.num_heads);
    const { pair } = this.model, other = this.read("patch_text", { ...fields, text, append: pair ? fields.append : [] });
    if (other.ids.length !== inputs.ids.length)
      refuse("patch_text", `has ${other.ids.length} tokens, but the text has ${inputs.ids.length}; a state is patched at its own position`);
    const change = { stack: config.shape, layer, part, head: ofHead ? head : null, positions: positions?.length ? positions : null };
    const size = ofHead ? config.head_dim : config.hidden_size, all = this.valuesOf(this.runs.run(other, { records: true }), change);
    const rows = change.positions?.map((position) => all.subarray(position * size, (position + 1) * size));
    if (!rows) return [{ ...change, values: all }];
    const values = new Float32Array(rows.length * size);
    rows.forEach((row, i) => values.set(row, i * size));
    return [{ ...change, values }];
  }

  // ---- The answer.
  look(fields) {
    const inputs = this.read("text", fields), position = this.positionOf(inputs, fields.position), stack = this.stackOf(fields.stack);
    const layer = numberBelow("layer", fields.layer, stack.config.num_layers), off = this.off(fields, stack);
    const explained = this.explained(fields, stack, layer);
    const means = fields.with === "mean" && off.length > 0, patched = this.patch(fields, inputs, stack);
    const changes = [...(means ? this.withMeans(off, inputs) : off), ...patched];
    const runs = this.runs.run(inputs, { changes, key: means || patched.length > 0 ? null : JSON.stringify(off) });
    const own = runs[this.model.headStack.config.shape], logits = this.model.logits(own.stream.at(-1).row(position));
    const plainRuns = changes.length > 0 ? this.runs.run(inputs, { key: "[]" }) : null;
    const plain = plainRuns && this.model.logits(plainRuns[this.model.headStack.config.shape].stream.at(-1).row(position));
    const answer = { model: this.header.model, shape: this.shape(stack), tokens: this.tokens(inputs.ids), position,
      answer: this.answer(logits, plain), lens: this.lens(own, position, logits), norms: own.stream.map((rows) => lengthsOf(rows)) };
    if (inputs.written) answer.written = this.tokens(inputs.written);
    if (fields.append?.length) answer.text = this.continued(fields);
    if (layer !== null) answer.attention = this.attention(runs[stack.config.shape], layer);
    if (layer !== null) answer.inside = insideOf(this, runs[stack.config.shape], layer, position);
    if (explained) answer.attention.steps = this.steps(runs[stack.config.shape], layer, { ...explained, position });
    return answer;
  }
  // The head whose weights are explained, or null.
  explained({ head, query, cross = false }, { config }, layer) {
    const chosen = numberBelow("head", head, config.num_heads);
    if (chosen !== null && layer === null) refuse("head", "needs a layer");
    if (cross && !this.hasCross(config)) refuse("cross", "needs a cross-attention");
    return chosen === null ? null : { head: chosen, query, crosses: cross };
  }
  steps(run, layer, { head, query, crosses, position }) {
    return scoresOf(run, layer, { head, query: numberBelow("query", query, run.length) ?? Math.min(position, run.length - 1), crosses });
  }
  shape({ config }) {
    const { model } = this;
    return { kind: model.config.shape, stack: config.shape, layers: config.num_layers, heads: config.num_heads, width: config.hidden_size,
      cross: this.hasCross(config), positions: config.position, norm: config.norm_placement, parallel: config.sublayer_order !== "sequential" };
  }
  name(id) {
    return this.header.head === "causal-lm" ? this.tokenizer.added(id) : this.tokenizer.spelling(id);
  }
  tokens(ids) {
    const hex = (id) => Array.from(this.tokenizer.decode([id]), (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
    return ids.map((id) => ({ id, token: this.name(id), bytes: hex(id) }));
  }
  continued({ text, target = "", append }) {
    const begin = this.model.pair ? target : text, ids = this.tokenizer.ids(begin), utf8 = (some) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.tokenizer.decode(some));
    const before = utf8(ids), after = utf8([...ids, ...append]);
    return after.startsWith(before) ? begin + after.slice(before.length) : after;
  }
  answer(logits, plain) {
    let ids = largest(logits, kNamed);
    if (plain) ids = [...new Set([...ids, ...largest(plain, kNamed)])].sort((a, b) => logits[b] - logits[a]);
    const named = new Set(ids), rest = (all) => new Uint8Array(all.filter((_, id) => !named.has(id)).buffer), of = (all) => ids.map((id) => all[id]);
    const answer = { kind: "token", count: logits.length, ids, names: ids.map((id) => this.name(id)), logits: of(logits), rest: rest(logits) };
    if (!plain) return answer;
    return { ...answer, plain: { logits: of(plain), rest: rest(plain) }, divergence: bitsBetween(logSoftmax(plain), logSoftmax(logits)) };
  }
  lens({ stream }, position, logits) {
    const before = stream.slice(0, -1), states = new Float32Array(before.length * stream[0].width), size = logits.length;
    before.forEach((rows, layer) => states.set(rows.row(position), layer * rows.width));
    const all = this.model.logits(states), last = logSoftmax(logits);
    return stream.map((_, layer) => {
      const log = layer < before.length ? logSoftmax(all.subarray(layer * size, (layer + 1) * size)) : last;
      return { answers: largest(log, kLensAnswers).map((id) => ({ id, name: this.name(id), probability: Math.exp(log[id]) })),
        entropy: -log.reduce((sum, each) => sum + Math.exp(each) * each, 0) / Math.LN2, divergence: bitsBetween(last, log) };
    });
  }
  attention(run, layer) {
    const maps = [mapOf("self", run.maps[layer], run.stack.config)];
    if (run.memory) maps.push(mapOf("cross", run.crossMaps[layer], run.stack.config));
    const length = run.length, rollout = new Uint8Array(length * length);
    run.rollout[layer].forEach((row, query) => row.forEach((share, key) => { rollout[query * length + key] = Math.round(255 * share); }));
    return { layer, maps, rollout };
  }
}

const lengthsOf = (rows) => Array.from({ length: rows.length }, (_, i) => Math.sqrt(rows.row(i).reduce((sum, value) => sum + value * value, 0)));
// [heads, queries, keys] of the rows of queries, which in a decoder end at their own key.
const mapOf = (kind, rows, { num_heads: heads }) => {
  const queries = rows.length, keys = rows.at(-1).length / heads, weights = new Uint8Array(heads * queries * keys);
  rows.forEach((row, query) => {
    const own = row.length / heads;
    for (let head = 0; head < heads; ++head) weights.set(row.subarray(head * own, (head + 1) * own), (head * queries + query) * keys);
  });
  return { kind, heads, queries, keys, weights };
};
