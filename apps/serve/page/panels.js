// ---- The panels that can be saved, and the numbers that each one shows.
const answerNumbers = () => {
  const { answer } = state.seen, { shares, before } = shownOf(answer);
  return { ...begun(), position: state.seen.position, ...(isDistribution(answer) ? { sampling: choices } : {}),
    answers: answer.ids.map((id, i) => ({ id, name: answer.names[i], logit: answer.logits[i], [answer.kind === "score" ? "score" : "probability"]: shares[i], before: before[i] })) };
};
// What belongs to every file: the model, its text and what is off.
const begun = () => ({ model: state.seen.model, tokens: answerTokens().map(({ id, token }) => ({ id, token })), off: [...state.off],
  patch: patchFits() ? { ...state.patch } : null });
const opened = () => ({ ...begun(), block: state.layer });
const squareOf = (rows, columns, at) => Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (__, column) => at(row, column)));
const kPanels = {
  "answer-part": { name: "answer", numbers: answerNumbers },
  "blocks-part": { name: "blocks", numbers: () => ({ ...begun(), lens: state.seen.lens, lengths: state.seen.norms }) },
  "attention-part": { name: "attention", numbers: () => ({ ...opened(), map: shownMap.kind, head: state.head < 0 ? "mean" : state.head, queries: shownMap.queries,
    keys: shownMap.keys, weights: squareOf(shownMap.queries.length, shownMap.keys.length, shownWeight) }) },
  steps: { name: "head-step-by-step", numbers: () => {
    const { sent, ...all } = steps, plain = (each) => (ArrayBuffer.isView(each) ? [...each] : each === -Infinity ? "-inf" : Array.isArray(each) ? each.map(plain) : each);
    return { ...opened(), head: state.seen.asked.head, query_position: Number(byId("query").value),
      ...Object.fromEntries(Object.entries(all).map(([name, value]) => [name, plain(plain(value))])) };
  } },
  "lens-part": { name: "logit-lens", numbers: () => ({ ...opened(), ...state.seen.lens?.[state.layer + 1] }) },
  "norms-part": { name: "lengths", numbers: () => ({ ...opened(), before: state.seen.norms[state.layer], after: state.seen.norms[state.layer + 1] }) },
  "neurons-part": { name: "neurons", numbers: () => ({ ...opened(), ...state.seen.inside }) },
  "all-heads-part": { name: "all-heads", numbers: () => ({ ...begun(), heads: allHeads?.rows ?? [] }) },
  "rollout-part": { name: "rollout", numbers: () => {
    const count = stackTokens().length;
    return { ...opened(), rollout: squareOf(count, count, (row, column) => state.seen.attention.levels[row * count + column] / 255) };
  } },
  "run-part": { name: "loss", numbers: () => ({ columns: ["iteration", "training loss", "validation loss", "tokens per second"], rows }) },
};
