// ---- Inside a block at one position: its norms, and the strongest neurons of its feed-forward network (Geva et al., 2022), as POST
// /look sends them (models/analysis/inside_block.h).
const kNeurons = 8, kPromoted = 5;
const lengthOf = (row) => Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));
const normNumbers = (name, norm, row) => {
  const mean = norm.kind === "layer_norm" ? row.reduce((sum, value) => sum + value, 0) / row.length : null;
  const square = row.reduce((sum, value) => sum + (value - (mean ?? 0)) ** 2, 0) / row.length;
  return { name, mean, divisor: Math.sqrt(square + norm.eps), before: lengthOf(row), after: lengthOf(normed(norm, row)) };
};

const columnOf = ({ rows, columns, data, scales }, at) => Float32Array.from({ length: rows }, (_, r) => data[r * columns + at] * (scales ? scales[r] : 1));
// Lengths of all columns, computed once for each matrix.
const columnLengths = new WeakMap();
const lengthsOfColumns = (weight) => {
  if (!columnLengths.has(weight)) columnLengths.set(weight, Float32Array.from({ length: weight.columns }, (_, at) => lengthOf(columnOf(weight, at))));
  return columnLengths.get(weight);
};

const neuronsOf = (looker, run, layer, row) => {
  const { model } = looker, { weight } = run.stack.layers[layer]["feed_forward.down"], activations = run.neurons(layer, row), lengths = lengthsOfColumns(weight);
  const strengths = activations.map((each, i) => Math.abs(each) * lengths[i]);
  return largest(strengths, kNeurons).filter((id) => strengths[id] > 0).map((id) => {
    const raised = run.stack === model.headStack && model.raised(columnOf(weight, id).map((value) => value * activations[id]));
    return { id, activation: activations[id], strength: strengths[id], tokens: raised ? largest(raised, kPromoted).map((each) => looker.name(each)) : [] };
  });
};
const insideOf = (looker, run, layer, chosen) => {
  const { layers, finalNorm } = run.stack, position = Math.min(chosen, run.length - 1);
  const norms = Object.entries(run.norms[layer]).map(([name, read]) => normNumbers(name, layers[layer][name], read.row(position)));
  if (layer === layers.length - 1 && finalNorm) norms.push(normNumbers("final_norm", finalNorm, run.stream.at(-1).row(position)));
  return { position, norms, neurons: neuronsOf(looker, run, layer, run.fed[layer].row(position)), experts: [] };
};
