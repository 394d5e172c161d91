// ---- A drawing as SVG: takes the calls that the page's drawings make of a canvas, and writes elements instead.
// In a document of their own, so that the page loads none of the pictures inside.
const svgDocument = document.implementation.createDocument("http://www.w3.org/2000/svg", "svg");
const svgElement = (name, attributes, text = "") => {
  const made = svgDocument.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  made.textContent = text;
  return made;
};
const kAnchors = { right: "end", end: "end", center: "middle" };

class SvgContext {
  constructor(host) {
    Object.assign(this, { host, kept: [], path: "", fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "", textAlign: "left" });
  }
  add(name, attributes, text) {
    this.host.append(svgElement(name, { ...attributes, ...(this.globalAlpha < 1 ? { opacity: this.globalAlpha } : {}) }, text));
  }
  fillRect(x, y, width, height) { this.add("rect", { x, y, width, height, fill: this.fillStyle }); }
  strokeRect(x, y, width, height) { this.add("rect", { x, y, width, height, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth }); }
  beginPath() { this.path = ""; }
  moveTo(...at) { this.path += `M${at.map((each) => each.toFixed(2)).join(" ")}`; }
  lineTo(...at) { this.path += `L${at.map((each) => each.toFixed(2)).join(" ")}`; }
  bezierCurveTo(...at) { this.path += `C${at.map((each) => each.toFixed(2)).join(" ")}`; }
  stroke() { this.add("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth }); }
  fillText(text, x, y, most = Infinity) {
    const probe = element("canvas").getContext("2d");
    probe.font = this.font;
    const narrowed = probe.measureText(text).width > most ? { textLength: most, lengthAdjust: "spacingAndGlyphs" } : {};
    // Attributes, since the page's policy allows no style of an element.
    const [, weight = "400", size, family] = /^(?:(\w+) )?([\d.]+px) (.*)$/.exec(this.font);
    this.add("text", { x, y, fill: this.fillStyle, "font-weight": weight, "font-size": size, "font-family": family, "dominant-baseline": "central",
      "text-anchor": kAnchors[this.textAlign] ?? "start", ...narrowed }, text);
  }
  measureText(text) {
    const probe = element("canvas").getContext("2d");
    probe.font = this.font;
    return probe.measureText(text);
  }
  drawImage(canvas, x, y, width, height) {
    this.add("image", { x, y, width, height, href: canvas.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated" });
  }
  // Moved, turned or grown: a group inside the one before.
  within(transform) {
    const group = svgElement("g", { transform });
    this.host.append(group);
    this.host = group;
  }
  save() { this.kept.push({ ...this, kept: null }); }
  restore() {
    const { kept, ...before } = this.kept.pop();
    Object.assign(this, before);
  }
  translate(x, y) { this.within(`translate(${x.toFixed(2)} ${y.toFixed(2)})`); }
  rotate(angle) { this.within(`rotate(${(180 * angle) / Math.PI})`); }
  scale(by) { this.within(`scale(${by})`); }
}
