// ---- The guide's panel: a page at a time, among those that this model has.
const guidePages = () => kGuide.filter(({ when }) => !when || when());
const textOf = (part) => (typeof part === "function" ? part() : part);

// The page's text, if it is not already there.
const isTyped = ({ text, target = "" }) => state.text === text && state.target === target && state.append.length === 0;
const renderExample = async (page) => {
  const { model } = state, example = await exampleOf(page);
  if (model !== state.model || page !== guidePages()[state.guide]) return;  // left in the meantime
  byId("guide-example").hidden = !example || isTyped(example);
  byId("guide-text").textContent = example ? [example.text, example.target].filter(Boolean).join(" → ") : "";
};
const takeExample = (example) => {
  Object.assign(state, { target: "", ...example, append: [], position: null, query: null, key: null, ownText: false });
  byId("text").value = state.text;
  byId("target").value = state.target;
};

const renderGuide = () => {
  const open = state.guide !== null, pages = guidePages();
  byId("guide").hidden = !open;
  byId("guide-open").setAttribute("aria-expanded", String(open));
  if (!open) return;
  state.guide = Math.min(state.guide, pages.length - 1);
  const page = pages[state.guide];
  byId("guide-title").textContent = `${state.guide + 1} of ${pages.length}: ${page.title}`;
  byId("guide-says").textContent = page.says;
  byId("guide-equation").replaceChildren(...withIndices(textOf(page.equation)));
  byId("guide-try").textContent = page.action;
  renderExample(page);
  byId("guide-back").disabled = state.guide === 0;
  byId("guide-next").disabled = state.guide === pages.length - 1;
};
const turnTo = (page) => {
  state.guide = page;
  for (const each of document.querySelectorAll(".pointed")) each.classList.remove("pointed");
  if (state.seen) renderGuide();
  writeLink();
};

// Sets the page to what the guide's page tells of, and shows where. A text that somebody has typed stays.
const tryPage = async () => {
  const page = guidePages()[state.guide], example = state.ownText ? null : await exampleOf(page);
  if (example && !isTyped(example)) {
    takeExample(example);
    await look();
  }
  page.set();
  await look();
  const place = document.querySelector(page.at);
  for (const each of document.querySelectorAll(".pointed")) each.classList.remove("pointed");
  place.classList.add("pointed");
  place.scrollIntoView({ behavior: isStill() ? "auto" : "smooth", block: "start" });
};
const watchGuide = () => {
  byId("guide-open").addEventListener("click", () => turnTo(state.guide === null ? 0 : null));
  byId("guide-close").addEventListener("click", () => { turnTo(null); byId("guide-open").focus(); });
  byId("guide-back").addEventListener("click", () => turnTo(state.guide - 1));
  byId("guide-next").addEventListener("click", () => turnTo(state.guide + 1));
  byId("guide-try").addEventListener("click", tryPage);
  byId("guide-take").addEventListener("click", async () => {
    takeExample(await exampleOf(guidePages()[state.guide]));
    await look();
    byId("guide-try").focus();  // the button is gone
  });
};
