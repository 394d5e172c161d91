// ---- Elements, created without markup: texts of users and models are text nodes.
const byId = (id) => document.getElementById(id);
const element = (name, properties = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const kFont = "system-ui, 'DejaVu Sans', sans-serif";
// Makes spaces and line ends visible.
const visible = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");

// What is cut off can be scrolled to by keys.
let reaching = 0;
const reachScrolled = () => {
  clearTimeout(reaching);  // sizes are read once, when nothing moves
  reaching = setTimeout(() => {
    const parts = [...document.querySelectorAll(".scroll, .scrolls")];
    const scrolls = parts.map((part) => part.scrollWidth > part.clientWidth + 1 || part.scrollHeight > part.clientHeight + 1);
    parts.forEach((part, i) => { part.tabIndex = scrolls[i] ? 0 : -1; });
  }, 100);
};

// The widest of some texts in the context's font, measured once for each list.
const measured = new WeakMap();
const widest = (context, texts) => {
  if (!measured.has(texts)) measured.set(texts, Math.max(...texts.map((text) => context.measureText(text).width)));
  return measured.get(texts);
};

// Drawings grow with the text of the page: their unit is a pixel where the root's text has 16.
const zoom = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
const widthAround = (canvas) => (canvas.parentElement.clientWidth || 320 * zoom()) / zoom();
const pointOn = (canvas, event) => {
  const box = canvas.getBoundingClientRect();
  return { x: (event.clientX - box.left) / zoom(), y: (event.clientY - box.top) / zoom() };
};

// While a drawing is saved, what records it in place of its canvas.
let recorder = null;
// A cleared canvas of this size in these units. Browsers refuse more than about 16,000 pixels per side.
const prepared = (canvas, width, height) => {
  if (recorder) return recorder;
  const scale = Math.min((devicePixelRatio || 1) * zoom(), 16000 / Math.max(width, height));
  const wide = Math.max(1, Math.round(width * scale)), high = Math.max(1, Math.round(height * scale)), context = canvas.getContext("2d");
  if (canvas.width === wide && canvas.height === high && context.reset) context.reset();  // a new size would lay out the page again
  else {
    Object.assign(canvas, { width: wide, height: high });
    Object.assign(canvas.style, { width: `${width * zoom()}px`, height: `${height * zoom()}px` });
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.textBaseline = "middle";
  return context;
};
