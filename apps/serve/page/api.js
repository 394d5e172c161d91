// ---- One request of /look at a time; later changes are sent after its answer.
const say = (text, isError = false) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
};

const offOf = (kind) => [...state.off].filter((site) => site.startsWith(`${kind} `)).map((site) => site.slice(kind.length + 1));

// Ids and positions are of a vocabulary: models with another one get the text that the ids have become.
const haveSameTokens = (model, other) => model?.vocabulary === other?.vocabulary;
const grownText = () => (state.append.length > 0 && state.seen?.text ? { [isPair() ? "target" : "text"]: state.seen.text } : {});

const lookFields = (model) => {
  const same = haveSameTokens(about(model), about(state.model)), { text, target } = same ? state : { ...state, ...grownText() };
  const fields = { model, text, with: state.with };
  if (same && state.append.length > 0) fields.append = state.append;
  if (state.pair !== "") fields.text_pair = state.pair;
  if (about(model)?.head === "seq2seq-lm") fields.target = target;
  if (same && state.position !== null) fields.position = state.position;
  if (state.stack !== null) fields.stack = state.stack;
  if (state.layer !== null) fields.layer = state.layer;
  if (state.layer !== null && state.head >= 0 && model === state.model) {
    fields.head = state.head;
    if (crosses()) fields.cross = true;
    if (state.query !== null) fields.query = state.query;
  }
  for (const kind of ["heads", "cross_heads", "sublayers", "layers"]) if (offOf(kind).length > 0) fields[kind] = offOf(kind);
  const { text: other, part, layer, head, position } = state.patch;
  if (!patchFits()) return fields;
  if (!same && position !== "") throw new Error(`${model} has other tokens: no single one of them can be patched.`);
  Object.assign(fields, { patch_text: other, patch_part: part, patch_layer: layer });
  if (part.endsWith("head")) fields.patch_head = head;
  if (position !== "") fields.patch_positions = [Number(position)];
  return fields;
};

// The second model's error stands at its choice: the first one's answer is true without it.
const lookBeside = async () => {
  state.beside = null;
  try {
    if (state.other !== null) state.beside = spellOut(await ask("/look", lookFields(state.other)));
  } catch (error) {
    showErrorAt("other", error);
  }
};
const lookOnce = async () => {
  const begin = performance.now(), asked = { text: state.text, target: state.target, appended: state.append.length, head: state.head, cross: crosses(), query: state.query };
  const patchError = await countPatch(), fields = lookFields(state.model), answer = spellOut(await ask("/look", fields));
  asked.run = JSON.stringify({ ...fields, head: null, query: null });
  // Of another head or query of the same run, only the steps are new.
  const same = asked.run === state.seen?.asked.run && !document.body.classList.contains("stale");
  if (same) state.seen = { ...state.seen, asked, attention: answer.attention && { ...state.seen.attention, steps: answer.attention.steps } };
  else state.seen = { ...answer, asked };
  clearErrors();
  if (patchError) showErrorAt("patch", patchError);
  if (!same || (state.beside?.model ?? null) !== state.other) await lookBeside();
  say(`${answerTokens().length} tokens, answered in ${Math.round(performance.now() - begin)} ms`);
  render(!same);
};
let looking = null, again = false;
// Resolves when the page shows the latest request.
const look = () => {
  again = true;
  looking ??= (async () => {
    while (again) {
      again = false;
      try {
        await lookOnce();
      } catch (error) {
        if (slides(error) || opensFirst(error) || leavesHead(error)) again = true;
        else if (!again) fail(error);
      }
    }
    looking = null;
  })();
  return looking;
};
