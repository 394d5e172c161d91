// ---- The server's API. A page that is a file has another one in its place (page_engine/file_api.js).
const headers = () => ({ "Content-Type": "application/json", ...(byId("key").value ? { Authorization: `Bearer ${byId("key").value}` } : {}) });

const answered = async (reply) => {
  const body = await reply.json().catch(() => ({}));
  if (reply.status === 401) byId("key-label").hidden = false;
  // With the error's fields: param, tokens, limit.
  if (!reply.ok) throw Object.assign(new Error(`The server answered ${reply.status}.`), body.error);
  return body;
};
const reach = (path, how) => fetch(path, { headers: headers(), ...how }).catch(() => {
  throw new Error("The server does not answer. Is tzoo serve still running?");
}).then(answered);
const ask = (path, fields) => reach(path, { method: "POST", body: JSON.stringify(fields) });
const listModels = () => reach("/v1/models");
