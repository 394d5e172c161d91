// ---- The steps in words: each with the paper's formula, a sentence, the numbers of all keys, and the sum of one key.
const decimals = (x) => (x === -Infinity ? "−∞" : x === 0 ? "0" : Math.abs(x) < 0.001 ? x.toExponential(2) : x.toFixed(4)).replaceAll("-", "−");
const inBrackets = (x) => (x < 0 ? `(${decimals(x)})` : decimals(x));
const sumOf = (a, b) => Array.from(a, (each, i) => `${inBrackets(each)} · ${inBrackets(b[i])}`).join(" + ");

const kBiases = {
  t5_buckets: "Position: the distance between the two tokens falls into one of T5's buckets, and each head has learned a number for each bucket (Raffel et al., 2020).",
  learned_and_t5_buckets: "Position: the distance between the two tokens falls into one of T5's buckets, and each head has learned a number for each bucket (Raffel et al., 2020).",
  alibi: "Position: ALiBi takes off the head's slope times the distance between the two tokens (Press et al., 2022).",
  disentangled: "Position: the distance between the two tokens has a query and a key of its own (He et al., 2021).",
};
const tokenText = (names, i) => `${i} ${names[i]}`;

// [{title, formula, says, before, after, sum(key)}]: `before` and `after` are numbers of each key, or none. `at`: {names of
// the keys, own: the query's name, position, positions: the model's kind, crosses, decoder: true in
// a decoder}.
const stepsInWords = (steps, at) => {
  const { query, keys, scale, softcap, added, dots, scaled, capped, biased, scores, powers, sum, shares, unrotated } = steps, size = query.length;
  const key = (i) => tokenText(at.names, i), usual = Math.abs(scale - 1 / Math.sqrt(size)) < 1e-6 * scale;
  const list = [
    { title: "Query", formula: "q = x W_Q", strips: "query",
      says: `What ${at.own} looks for: the head's query matrix W_Q turns the token's state x into ${size} numbers.` },
    { title: "Keys", formula: "k_j = x_j W_K", strips: "keys",
      says: `What each token ${at.crosses ? "of the encoder " : ""}offers: the key matrix W_K turns its state into as many numbers.` },
    { title: "Dot products", formula: unrotated ? "(R_i q) · (R_j k_j)" : "q · k_j", before: unrotated && ["before rotation", unrotated], after: ["q · k", dots],
      says: `Query and key are multiplied number by number and added up: the better they match, the larger the dot product.` +
        (unrotated ? " Rotary positions first turn query and key by angles that grow with their positions (Su et al., 2021): the left numbers are without it." : ""),
      sum: (i) => `q · k for ${key(i)}: ${sumOf(query, keys[i])} = ${decimals(dots[i])}` },
    { title: "Scale", formula: usual ? "q · k_j / √d_k" : "q · k_j × scale", before: ["q · k", dots], after: ["scaled", scaled],
      says: usual ? `Divided by √${size} = ${Math.sqrt(size).toFixed(4)}: sums of ${size} products would be so large that the softmax had almost no gradient.`
        : `This model multiplies by ${decimals(scale)}, not by 1 / √${size} = ${decimals(1 / Math.sqrt(size))}.`,
      sum: (i) => `${key(i)}: ${decimals(dots[i])} × ${decimals(scale)} = ${decimals(scaled[i])}` },
  ];
  if (softcap > 0) list.push({ title: "Softcap", formula: "c tanh(s / c)", before: ["scaled", scaled], after: ["capped", capped],
    says: `Scores are kept between −${softcap} and ${softcap} (Gemma 2: Riviere et al., 2024).`,
    sum: (i) => `${key(i)}: ${softcap} · tanh(${decimals(scaled[i])} / ${softcap}) = ${decimals(capped[i])}` });
  if (added.some((each) => each !== 0 && each !== -Infinity)) list.push({ title: "Position", formula: "s_j + b_ij", before: ["score", capped], after: ["with position", biased],
    says: kBiases[at.positions] ?? "A number for the two positions is added.",
    sum: (i) => `${key(i)}, at distance ${Math.abs(i - at.position)}: ${added[i] === -Infinity ? "hidden" : `${decimals(capped[i])} + ${inBrackets(added[i])} = ${decimals(biased[i])}`}` });
  const hidden = scores.filter((score) => score === -Infinity).length, early = added.some((each, i) => each === -Infinity && i < at.position);
  list.push({ title: "Mask", formula: "s_j ← −∞ for hidden j", before: ["score", biased], after: ["masked", scores],
    says: hidden === 0 ? "Nothing is hidden here: this query sees every key." :
      `${hidden} of ${scores.length} keys are hidden: ${early || !at.decoder ? "they lie outside the layer's window" : "later tokens, which a decoder must not see"}. Their scores become −∞.`,
    sum: (i) => `${key(i)}: ${scores[i] === -Infinity ? "hidden, −∞" : `seen, ${decimals(scores[i])} stays`}` });
  const minus = steps.shift === 0 ? "" : ` − ${decimals(steps.shift)}`;
  list.push({ title: "Softmax", formula: "a_j = exp(s_j) / Σ exp(s)", before: ["score", scores], after: ["weight", shares],
    says: "The exponential makes each score positive, and the division by their sum makes the weights add up to 1." +
      (minus ? ` The largest score is taken off first, which changes no weight.` : ""),
    sum: (i) => `${key(i)}: exp(${decimals(scores[i])}${minus}) / ${decimals(sum)} = ${decimals(powers[i])} / ${decimals(sum)} = ${decimals(shares[i])}` });
  list.push({ title: "Values", formula: "v_j = x_j W_V", strips: "values",
    says: "What each token hands over when it is attended to: the value matrix W_V turns its state into numbers." });
  list.push({ title: "Output", formula: "Σ_j a_j v_j", strips: "output", before: ["weight", shares],
    says: "The values are added up, each times its weight. All heads' outputs side by side, times W_O, are added to the residual stream.",
    sum: () => `First number: ${shares.map((share, i) => [share, steps.values[i][0]]).filter(([share]) => share >= 0.0005)
      .map(([share, value]) => `${decimals(share)} · ${inBrackets(value)}`).join(" + ")} = ${decimals(steps.output[0])}` });
  return list;
};
