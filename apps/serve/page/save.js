// ---- A panel as a picture (SVG or PNG) or its numbers (JSON). What is in the panel is drawn once more: its boxes, words and
// canvases, those that the page can draw again as lines and words too.
const kDrawn = { lines: () => lines.draw(), heat: () => heat.draw(), rollout: () => rollout.draw(), norms: () => renderNorms(), loss: () => drawLoss() };
const isShown = (part) => part.getClientRects().length > 0 && !part.matches(".save, details, noscript, [hidden], .error");

const drawCanvas = (context, canvas, box) => {
  if (!(context instanceof SvgContext) || !kDrawn[canvas.id]) {
    context.imageSmoothingEnabled = false;
    return context.drawImage(canvas, box.left, box.top, box.width, box.height);
  }
  context.save();
  context.translate(box.left, box.top);
  context.scale(zoom());
  recorder = context;
  kDrawn[canvas.id]();
  recorder = null;
  context.restore();
};
const drawWords = (context, node, at, style) => {
  Object.assign(context, { fillStyle: style.color, font: `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`, textAlign: "left", textBaseline: "middle" });
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const { left, top, width, height } = range.getBoundingClientRect();
    if (width > 0) context.fillText(word, left - at.left, top - at.top + height / 2);
  }
};
const drawPart = (context, part, at, alpha) => {
  if (part.nodeType === Node.TEXT_NODE) return drawWords(context, part, at, getComputedStyle(part.parentElement));
  if (part.nodeType !== Node.ELEMENT_NODE || !isShown(part)) return;
  const style = getComputedStyle(part), { left, top, width, height } = part.getBoundingClientRect();
  const box = { left: left - at.left, top: top - at.top, width, height }, own = alpha * Number(style.opacity);
  context.globalAlpha = own;
  if (part.matches("canvas")) return drawCanvas(context, part, box);
  if (!/, 0\)$|transparent/.test(style.backgroundColor)) {
    context.fillStyle = style.backgroundColor;
    context.fillRect(box.left, box.top, width, height);
  }
  if (parseFloat(style.borderTopWidth) > 0 && !/, 0\)$/.test(style.borderTopColor)) {
    Object.assign(context, { strokeStyle: style.borderTopColor, lineWidth: parseFloat(style.borderTopWidth) });
    context.strokeRect(box.left, box.top, width, parseFloat(style.borderBottomWidth) > 0 ? height : 0);
  } else if (parseFloat(style.borderLeftWidth) > 0) {
    context.fillStyle = style.borderLeftColor;
    context.fillRect(box.left, box.top, parseFloat(style.borderLeftWidth), height);
  }
  if (part.matches("input[type=checkbox]")) {
    Object.assign(context, { strokeStyle: style.color, fillStyle: style.accentColor, lineWidth: 1 });
    return part.checked ? context.fillRect(box.left, box.top, width, height) : context.strokeRect(box.left, box.top, width, height);
  }
  if (part.matches("select, textarea, input")) {
    Object.assign(context, { fillStyle: style.color, font: `${style.fontSize} ${style.fontFamily}`, textAlign: "left", textBaseline: "middle" });
    const text = part.matches("select") ? part.selectedOptions[0]?.textContent ?? "" : part.type === "range" ? "" : part.value;
    return context.fillText(text, box.left + 8, box.top + Math.min(height / 2, 18), width - 16);
  }
  for (const child of part.childNodes) {
    context.globalAlpha = own;
    drawPart(context, child, at, own);
  }
  context.globalAlpha = 1;
};

// Draws the panel by draw(context, its box), with everything that would be scrolled to.
const drawPanel = (panel, contextOf) => {
  panel.classList.add("saving");
  const at = panel.getBoundingClientRect(), context = contextOf(Math.ceil(at.width) + 1, Math.ceil(panel.scrollHeight) + 1);
  context.fillStyle = colour("--page");
  context.fillRect(0, 0, at.width + 1, panel.scrollHeight + 1);
  drawPart(context, panel, at, 1);
  panel.classList.remove("saving");
};
const svgOf = (panel) => {
  let svg = null;
  drawPanel(panel, (width, height) => new SvgContext(svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}` })));
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
};
const pngOf = (panel) => {
  const canvas = element("canvas");
  drawPanel(panel, (width, height) => {
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    return context;
  });
  return new Promise((done) => canvas.toBlob(done));
};

const download = (blob, name) => {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const makeMenus = () => {
  for (const [id, { name, numbers }] of Object.entries(kPanels)) {
    const items = { "Picture (SVG)": () => download(svgOf(byId(id)), `${name}.svg`), "Picture (PNG)": async () => download(await pngOf(byId(id)), `${name}.png`),
      "Numbers (JSON)": () => download(new Blob([JSON.stringify(numbers(), null, 1)], { type: "application/json" }), `${name}.json`) };
    const menu = element("details", { className: "save" }, element("summary", { textContent: "Save", "aria-label": `Save ${name.replaceAll("-", " ")}` }),
      ...Object.entries(items).map(([textContent, save]) => {
        const button = element("button", { type: "button", textContent });
        button.addEventListener("click", () => { save(); menu.open = false; });
        return button;
      }));
    byId(id).prepend(menu);
  }
};
