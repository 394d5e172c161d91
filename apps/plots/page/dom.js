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

// A cleared canvas of this size in CSS pixels. Browsers refuse more than about 16,000 pixels per side.
const prepared = (canvas, width, height) => {
  const scale = Math.min(devicePixelRatio || 1, 16000 / Math.max(width, height));
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.textBaseline = "middle";
  return context;
};
