// ---- Inside a block at the answer's position: the strongest neurons of its feed-forward network, what its norms do, and, of a
// mixture, which experts each token goes to.
const shortNumber = (number) => (Math.abs(number) < 1000 && (number === 0 || Math.abs(number) >= 1e-4) ? number.toPrecision(3) : number.toExponential(1)).replaceAll("-", "−");
const sublayerNames = { attention: "attention", cross_attention: "cross-attention", feed_forward: "feed-forward" };
const normName = (name) => {
  if (name === "final_norm") return "after the last block";
  const [, part, end] = /^(\w+?)(_end)?_norm$/.exec(name), placement = shape().norm, of = sublayerNames[part];
  if (end || placement === "branch_end") return `of ${of}’s output`;
  return placement === "post" ? `after ${of}` : `before ${of}`;
};
// What the box of a norm in the opened block shows.
const normOf = (layer, name) => (layer === state.layer ? state.seen.inside?.norms.find((norm) => norm.name === name) : undefined);
const normSays = ({ name, mean, divisor, before, after }) => `norm ${normName(name)}: ${mean === null ? "" : `takes off the mean ${shortNumber(mean)}, `}` +
  `divides by ${shortNumber(divisor)}; length ${shortNumber(before)} → ${shortNumber(after)}`;

const rowOf = (first, ...cells) => element("tr", {}, element("th", { scope: "row", textContent: first }),
  ...cells.map((cell) => (typeof cell === "string" ? element("td", { textContent: cell }) : cell)));
const fillRows = (id, rows) => byId(id).tBodies[0].replaceChildren(...rows);

const renderInside = () => {
  const { position, norms, neurons, experts } = state.seen.inside, tokens = labels(stackTokens()), most = Math.max(1e-9, ...neurons.map(({ strength }) => strength));
  const off = state.off.has(`sublayers ${state.layer}.feed_forward`) ? "; the network is off, and they are not used" : "";
  const promotes = neurons.some((neuron) => neuron.tokens.length > 0);
  byId("neurons-part").hidden = neurons.length === 0;
  byId("neurons-at").textContent = `of the feed-forward network, at token ${position} ${tokens[position]}${off}. Strength = |activation| × length of the neuron’s output column`;
  byId("neurons-promote").hidden = byId("neurons-head").hidden = !promotes;
  fillRows("neurons", neurons.map(({ id, activation, strength, tokens: raised }) => rowOf(String(id), shortNumber(activation), shortNumber(strength), barCell(strength, most),
    ...(promotes ? [element("td", { className: "raised", textContent: raised.map(visible).join(" ") })] : []))));
  byId("block-norms-part").hidden = norms.length === 0;
  fillRows("block-norms", norms.map(({ name, mean, divisor, before, after }) =>
    rowOf(normName(name), mean === null ? "–" : shortNumber(mean), shortNumber(divisor), `${shortNumber(before)} → ${shortNumber(after)}`)));
  byId("experts-part").hidden = experts.length === 0;
  fillRows("experts", experts.map((chosen, i) => rowOf(`${i} ${tokens[i]}`, ...chosen.flatMap(({ expert, weight }) => [`${expert}`, percent(weight), barCell(weight, 1)]))));
};
