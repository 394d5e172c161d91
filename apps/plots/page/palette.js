// ---- Colours of weights: from the page's background to a strong blue, by the root of the weight, so that
// small ones are visible.
const dark = matchMedia("(prefers-color-scheme: dark)");
const kRamps = {
  light: [[255, 255, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]],
  dark: [[22, 29, 39], [24, 60, 98], [38, 104, 163], [98, 170, 226], [226, 243, 255]],
};
let palette, pixels;  // the colours of 256 levels, and as the pixels of a canvas
const makePalette = () => {
  const stops = dark.matches ? kRamps.dark : kRamps.light;
  palette = Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    return stops[i].map((channel, c) => Math.round(channel + (stops[i + 1][c] - channel) * (at - i)));
  });
  pixels = new Uint32Array(Uint8Array.from(palette.flatMap((colour) => [...colour, 255])).buffer);
};
makePalette();
const levelOf = (value) => Math.round(Math.sqrt(Math.min(1, Math.max(0, value))) * 255);
const rgb = (value) => `rgb(${palette[levelOf(value)].join(",")})`;
// Black or white, whichever has the larger contrast: at least 4.5.
const inkOn = (value) => {
  const [r, g, b] = palette[levelOf(value)].map((channel) => (channel / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
};

// A pixel for each value in [0, 1].
const paint = (canvas, width, height, value) => {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const drawn = new Uint32Array(image.data.buffer);
  for (let i = 0; i < drawn.length; ++i) drawn[i] = pixels[levelOf(value(i))];
  context.putImageData(image, 0, 0);
};
