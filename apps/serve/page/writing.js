// ---- One token after another.
const appendToken = (id) => {
  state.append.push(id);
  state.position = null;
  state.changed = "append";
  return look();
};

// At the context's end the text slides as in `tzoo generate`: its last half stays and is read again, the new token included.
const keepLast = (count) => {
  const ids = [...answerTokens().map(({ id }) => id), ...state.append.slice(state.seen.asked.appended)];
  state[isPair() ? "target" : "text"] = "";
  state.append = ids.slice(-count);
};
const slides = ({ param, tokens, limit: most }) => {
  const asked = state.seen?.asked;
  const same = asked && asked.text === state.text && asked.target === state.target;
  if (state.changed !== "append" || !["text", "target"].includes(param) || !(tokens > most) || !same) return false;
  keepLast(Math.max(1, Math.floor(most / 2)));
  state.changed = "slid";
  byId("slid").textContent = `The model reads at most ${most} tokens: the beginning of the text was dropped and the last ${state.append.length} tokens kept, as tzoo generate does.`;
  byId("slid").hidden = false;
  return true;
};

const kMostRun = 60;
const run = async () => {
  state.running = !state.running;
  seedRandom(byId("seed").value);
  for (let count = 0; state.running && count < kMostRun && state.seen?.answer; ++count) {
    renderAnswer();
    await appendToken(drawn(state.seen.answer));
  }
  state.running = false;
  if (state.seen) renderAnswer();
};
