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
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.width = `${width * zoom()}px`;
  canvas.style.height = `${height * zoom()}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.textBaseline = "middle";
  return context;
};
