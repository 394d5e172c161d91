// ---- The engine answers the page's requests by their paths in the server's API.
const bytesIn = (pieces) => {
  const bytes = new Uint8Array(pieces.reduce((size, piece) => size + (piece.length / 4) * 3, 0));
  let end = 0;
  for (const piece of pieces) {
    const letters = atob(piece);
    for (let i = 0; i < letters.length; ++i) bytes[end++] = letters.charCodeAt(i);
  }
  return bytes;
};
// `weights` are pieces in base64: a text holds no large model.
const makeEngine = (header, weights) => {
  const tensors = tensorsOf(header.tensors, bytesIn(weights).buffer), tokenizer = makeTokenizer(header.tokenizer);
  const looker = new Looker(header, makeModel(header, tensors), tokenizer);
  // Texts that tzoo has encoded: a tokenizer that gives other ids is an error before it misleads.
  for (const { text, ids } of header.probes) {
    if (JSON.stringify(tokenizer.encode(text).ids) !== JSON.stringify(ids))
      throw new Error(`This page's tokenizer does not encode ${JSON.stringify(text)} as tzoo does. Please report it with the model's tokenizer.json.`);
  }
  const paths = {
    "/look": (fields) => looker.look(fields),
    "/tokenize": ({ content, add_special: special }) => ({ tokens: special ? tokenizer.encode(content).ids : tokenizer.ids(content) }),
  };
  return { ask: (path, fields) => paths[path](fields), tokenizer, looker };
};

// In the page's worker. Requests come with numbers; the first one has the model.
if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope) {
  let engine = null;
  onmessage = ({ data: { number, path, fields, header, weights } }) => {
    try {
      engine ??= makeEngine(header, weights);
      postMessage({ number, answer: path ? engine.ask(path, fields) : null });
    } catch ({ message, param, tokens, limit }) {
      postMessage({ number, error: { message, param, tokens, limit } });
    }
  };
}
