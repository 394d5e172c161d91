// ---- The server. One request of /look at a time; later changes are sent after its answer.
const headers = () => ({ "Content-Type": "application/json", ...(byId("key").value ? { Authorization: `Bearer ${byId("key").value}` } : {}) });

const answered = async (reply) => {
  const body = await reply.json().catch(() => ({}));
  if (reply.status === 401) byId("key-label").hidden = false;
  if (!reply.ok) throw new Error(body.error?.message ?? `the server answered ${reply.status}`);
  return body;
};
const ask = (path, fields) => fetch(path, { method: "POST", headers: headers(), body: JSON.stringify(fields) }).then(answered);
const listModels = () => fetch("/v1/models", { headers: headers() }).then(answered);

const say = (text, isError = false) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
};

const offOf = (kind) => [...state.off].filter((site) => site.startsWith(`${kind} `)).map((site) => site.slice(kind.length + 1));

const lookFields = (model) => {
  const fields = { model, text: state.text, with: state.with };
  if (state.append.length > 0) fields.append = state.append;
  if (state.pair !== "") fields.text_pair = state.pair;
  if (about(model)?.head === "seq2seq-lm") fields.target = state.target;
  if (state.position !== null) fields.position = state.position;
  if (state.stack !== null) fields.stack = state.stack;
  if (state.layer !== null) fields.layer = state.layer;
  for (const kind of ["heads", "cross_heads", "sublayers", "layers"]) if (offOf(kind).length > 0) fields[kind] = offOf(kind);
  const { text, part, layer, head, position } = state.patch;
  if (text === "") return fields;
  Object.assign(fields, { patch_text: text, patch_part: part, patch_layer: layer });
  if (part.endsWith("head")) fields.patch_head = head;
  if (position !== "") fields.patch_positions = [Number(position)];
  return fields;
};

let looking = null, again = false;
// Resolves when the page shows the latest request.
const look = () => {
  again = true;
  looking ??= (async () => {
    while (again) {
      again = false;
      const begin = performance.now();
      try {
        state.seen = await ask("/look", lookFields(state.model));
        state.beside = state.other === null ? null : await ask("/look", lookFields(state.other));
        if (!again) say(`${answerTokens().length} tokens, answered in ${Math.round(performance.now() - begin)} ms`);
        render();
      } catch (error) {
        state.running = false;
        say(error.message, true);
      }
    }
    looking = null;
  })();
  return looking;
};
