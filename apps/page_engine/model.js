// ---- Embeddings, stacks and head of a model: its config's fields have the names of TransformerConfig.
const configOf = (texts) => Object.fromEntries(Object.entries(texts).map(([name, text]) => {
  if (name.endsWith("_layers") && !name.startsWith("num_")) return [name, text];  // "0101"
  const number = Number(text);
  return [name, text === "true" || (text !== "false" && (text === "" || Number.isNaN(number) ? text : number))];
}));

const makeModel = ({ config: texts, head_activation: headActivation }, tensors) => {
  const config = configOf(texts), pair = config.shape === "encoder-decoder";
  const get = (name) => tensors.get(name), part = (name) => get(`${name}.weight`) && { weight: get(`${name}.weight`), bias: get(`${name}.bias`) };
  const norm = (name) => part(name) && { kind: config.norm, eps: config.layer_norm_eps, ...part(name) };
  const own = { ...config, shape: config.shape === "encoder" ? "encoder" : "decoder", num_layers: config.num_decoder_layers || config.num_layers };
  const stacks = pair ? { encoder: makeStack(tensors, "stack.encoder.", { ...config, shape: "encoder" }), decoder: makeStack(tensors, "stack.decoder.", own) }
    : { [own.shape]: makeStack(tensors, "stack.", own) };

  // Rows of the table of positions; padding has RoBERTa's, which of a table of sinusoids is zero.
  const positionRows = (ids) => {
    const { position_count: counts, pad_token_id: pad, position_offset: offset } = config;
    if (counts !== "not_padding") return ids.map((_, i) => offset + i);
    let kept = pad;
    return ids.map((id) => (id === pad ? pad : ++kept));
  };
  const sinusoidOf = (row, width) => config.position_count === "not_padding" && row === config.pad_token_id ? new Float32Array(width)
    : sinusoid(row, width, config.sinusoid_order);
  // [count, C] of the ids from number `from` on.
  const embedded = (which, ids, types, from) => {
    const token = get("embeddings.token.weight"), name = get(`${which}.position.weight`) || get(`${which}.norm.weight`) ? which : "embeddings";
    const width = token.columns, table = get(`${name}.position.weight`), segment = get(`${name}.token_type.weight`), x = new Float32Array((ids.length - from) * width);
    const rows = positionRows(ids);
    for (let i = from; i < ids.length; ++i) {
      const row = rowOf(token, ids[i]).map((value) => value * config.embedding_scale), parts = [];
      if (table) parts.push(rowOf(table, rows[i]));
      if (config.position === "sinusoidal") parts.push(sinusoidOf(rows[i], width));
      if (segment) parts.push(rowOf(segment, types?.[i] ?? 0));
      for (const each of parts) for (let j = 0; j < width; ++j) row[j] += each[j];
      x.set(row, (i - from) * width);
    }
    const inner = norm(`${name}.norm`), projection = part(`${name}.projection`), out = inner ? normed(inner, x) : x;
    return projection ? linear(projection, out) : out;
  };

  const output = part("lm_head") ?? part("decoder") ?? { weight: get("embeddings.token.weight") };
  const readout = { weight: output.weight, bias: output.bias ?? get("prediction_bias") ?? get("output_bias") };
  const dense = part("prediction_dense"), headNorm = norm("prediction_norm"), scale = own.shape === "encoder" ? 1 : config.logits_scale;
  const headStack = stacks[own.shape];
  // Logits [count, V] of states of the residual stream after the last block, or, for the logit lens, after any.
  const logits = (states) => {
    let x = headStack.finalNorm ? normed(headStack.finalNorm, states) : states;
    if (dense) x = activated(linear(dense, x), headActivation, dense.weight.rows);
    if (headNorm) x = normed(headNorm, x);
    if (scale !== 1) x = x.map((value) => value * scale);
    const out = linear(readout, x);
    return config.logits_softcap > 0 ? out.map((value) => softcapped(value, config.logits_softcap)) : out;
  };
  // Products [V] of the output table with a direction of the states; null where a layer of the head is between them.
  const raised = (x) => (dense || headNorm || readout.weight.columns !== config.hidden_size ? null : linear({ weight: readout.weight }, x));
  return { config, pair, stacks, headStack, embedded, logits, raised, vocabulary: readout.weight.rows };
};

// Runs of a model on its inputs {ids, types, written}. The last runs are kept: a text that begins like the one before goes on.
class ModelRuns {
  constructor(model) {
    this.model = model;
    this.kept = new Map();
  }
  // {encoder, decoder}: the runs of the stacks. `changes` are named by `key`; without one nothing is kept.
  run({ ids, types, written }, { changes = [], key = null, records = false }) {
    const { pair, stacks } = this.model, of = (stack) => changes.filter((change) => change.stack === stack), keeps = key !== null && !records;
    const kept = (keeps && this.kept.get(key)) || {}, runs = {};
    if (stacks.encoder) {
      const name = JSON.stringify([ids, types]);
      runs.encoder = kept.name === name ? kept.encoder : new StackRun(stacks.encoder, { changes: of("encoder"), records });
      runs.name = name;
      if (runs.encoder.length === 0) runs.encoder.extend(this.model.embedded("embeddings", ids, types, 0));
    }
    if (stacks.decoder) {
      const own = pair ? written : ids, goesOn = kept.decoder && (!pair || kept.encoder === runs.encoder);
      runs.decoder = goesOn ? kept.decoder : new StackRun(stacks.decoder, { changes: of("decoder"), records, memory: pair ? memoryOf(runs.encoder) : null });
      let same = 0;
      while (goesOn && same < own.length && own[same] === kept.own[same]) ++same;
      runs.decoder.cut(same);
      runs.own = own;
      if (same < own.length) runs.decoder.extend(this.model.embedded(pair ? "decoder_embeddings" : "embeddings", own, null, same));
    }
    if (!keeps) return runs;
    this.kept.delete(key);
    this.kept.set(key, runs);
    if (this.kept.size > 3) this.kept.delete(this.kept.keys().next().value);
    return runs;
  }
}
const memoryOf = ({ stack, stream }) => {
  const last = stream.at(-1), states = last.data.slice(0, last.length * last.width);
  return stack.finalNorm ? normed(stack.finalNorm, states) : states;
};
