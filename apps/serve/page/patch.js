// ---- A patch needs another text with as many tokens. Both are counted; until they agree, nothing is patched.
const counted = new Map();
const countOf = async (text) => {
  const key = JSON.stringify([state.model, text]);
  if (!counted.has(key)) counted.set(key, (await ask("/tokenize", { model: state.model, content: text, add_special: true })).tokens.length);
  return counted.get(key);
};
const patchFits = () => state.patch.text !== "" && state.patch.counts !== null && state.patch.counts.other === state.patch.counts.own;
const dropPatch = () => {
  Object.assign(state.patch, { text: "", counts: null });
  byId("patch-text").value = "";
};

// A stream that is patched at all tokens leaves nothing of the text but what another stack reads.
const readsTheOther = () => state.patch.part === "residual" && state.patch.position === "" && !isPair();

const renderCount = () => {
  const { text, counts } = state.patch, note = byId("patch-count");
  note.hidden = text === "" || !counts;
  if (note.hidden) return;
  note.textContent = `${counts.other} of ${counts.own} tokens`;
  if (!patchFits()) note.textContent += ": nothing is patched until both texts have as many";
  else if (readsTheOther()) note.textContent += `: with all of them patched, the blocks after block ${state.patch.layer} read the other text; choose one token to see what its state carries`;
  note.classList.toggle("wrong", !patchFits());
};
// The error of the other text, if it has one: the answer is true without it. That of the text itself is /look's to tell.
const countPatch = async () => {
  const { patch, text } = state;
  patch.counts = null;
  if (patch.text !== "") {
    try {
      const other = await countOf(patch.text), own = await countOf(text).catch(() => null);
      patch.counts = own === null ? null : { other, own: own + (about(state.model).head === "seq2seq-lm" ? 0 : state.append.length) };
    } catch (error) {
      renderCount();
      return error;
    }
  }
  renderCount();
  return null;
};
