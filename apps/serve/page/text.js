// ---- The texts and their tokens.
const renderTokens = (host, tokens, chooses) => {
  const chosen = state.seen.position;
  host.replaceChildren(...tokens.map((token, i) => {
    const chip = element(chooses ? "button" : "span", {
      title: `${chooses ? `what the model expects ${shape().kind === "encoder" ? "here" : "after this token"}: ` : ""}position ${i}, id ${token.id}${token.bytes ? `, bytes ${token.bytes}` : ""}` }, visible(token.token) || "∅",
    element("small", { textContent: token.id }));
    if (!chooses) return chip;
    chip.type = "button";
    chip.setAttribute("aria-pressed", String(i === chosen));
    chip.addEventListener("click", () => {
      state.position = i === chosen && state.position !== null ? null : i;
      look();
    });
    return chip;
  }));
};

const renderText = () => {
  const { seen } = state, kind = shape().kind, spans = about(state.model)?.head === "question-answering";
  byId("pair-field").hidden = kind !== "encoder";
  const scores = seen.answer?.kind === "score" && seen.answer.count === 1;  // of a text, or, by a reranker, of a pair
  byId("text-label").textContent = spans ? "Question" : isPair() ? "Input of the encoder" : scores ? "Text, or query" : "Input of the model";
  byId("pair-label").textContent = spans ? "Text that holds the answer" : scores ? "Document that a reranker scores for the query, if there is one" : "Second text, if there is one";
  byId("target-field").hidden = !isPair();
  const answers = ["causal-lm", "masked-lm", "pretraining", "seq2seq-lm", "token-classification"].includes(about(state.model)?.head);
  renderTokens(byId("tokens"), seen.tokens, answers && !isPair());
  if (isPair()) renderTokens(byId("written"), seen.written, answers);
  const growing = byId(isPair() ? "target" : "text");
  if (document.activeElement !== growing || state.append.length > 0) growing.value = seen.text ?? (isPair() ? state.target : state.text);
};

const beginText = () => {
  const { head, mask_token: mask } = about(state.model);
  state.text = mask && head === "masked-lm" ? `the cat sat on the ${mask}` : head === "question-answering" ? "who sat on the mat?" : "the cat sat on the";
  state.pair = head === "question-answering" ? "the cat sat on the mat" : "";
  state.ownText = false;
  byId("text").value = state.text;
  byId("pair").value = state.pair;
};

const watchTexts = () => {
  for (const name of ["text", "pair", "target"]) {
    byId(name).addEventListener("input", (event) => {
      const growing = isPair() ? "target" : "text";
      // Appended tokens become part of the text that is edited; edits of another text keep them.
      if (name === growing) state.append = [];
      state[name] = event.target.value;
      state.ownText = true;
      state.position = null;
      state.changed = name;
      byId("slid").hidden = true;
      look();
    });
  }
};
