// ---- The model in this file, in place of a server: a worker answers what POST /look of `tzoo serve` answers.
const listed = JSON.parse(byId("model-header").textContent);
const worker = (() => {
  const source = URL.createObjectURL(new Blob([byId("engine").textContent], { type: "text/javascript" }));
  const made = new Worker(source), waiting = new Map();
  let numbers = 0;
  made.onmessage = ({ data: { number, answer, error } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (error) reject(Object.assign(new Error(), error));
    else resolve(answer);
  };
  made.onerror = ({ message }) => { for (const { reject } of waiting.values()) reject(new Error(message)); };
  const send = (fields) => new Promise((resolve, reject) => {
    waiting.set(++numbers, { resolve, reject });
    made.postMessage({ number: numbers, ...fields });
  });
  return { send };
})();
const pieces = [...document.querySelectorAll(".model-weights")];
const loaded = worker.send({ header: listed, weights: pieces.map((piece) => piece.textContent) });
for (const piece of pieces) piece.remove();

const ask = async (path, fields) => {
  await loaded;
  return worker.send({ path, fields });
};
const listModels = async () => {
  await loaded;
  const { model, family, head, mask_token, parameters, context } = listed;
  return { data: [{ id: model, family, head, mask_token, parameters, context }], run: null };
};
const reach = () => Promise.reject(new Error("A file has no server."));
document.title = listed.model;
byId("model").closest("label").hidden = true;
