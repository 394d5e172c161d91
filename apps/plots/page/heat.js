// ---- A heat map of one head with its tokens on both axes, which are named.
const kAxisName = 130;  // what the names of the axes need
const makeHeat = (canvas, { onHover = () => {}, onPick = () => {}, most = 760, across = "to (key) →", down = "← from (query)" } = {}) => {
  let view = null, row = null, layout = { cell: 0, left: 0, top: 0 };
  const draw = () => {
    if (!view) return;
    const { queries, keys } = view, probe = canvas.getContext("2d");
    probe.font = `13px ${kFont}`;
    const longest = (tokens) => Math.min(110, Math.max(8, widest(probe, tokens)));
    const left = Math.ceil(longest(queries)) + 28, top = Math.ceil(longest(keys)) + 28;
    const room = Math.min(widthAround(canvas), most) - left - 4;
    // Below 11 pixels a row the tokens of some rows are left out; the readout names all.
    const fits = Math.min(40, room / keys.length), cell = fits >= 4 ? Math.floor(fits) : Math.max(1.5, Math.floor(2 * fits) / 2);
    const step = Math.max(1, Math.ceil(11 / cell));
    const wide = cell * keys.length, high = cell * queries.length;
    const context = prepared(canvas, left + Math.max(wide + 2, kAxisName), top + Math.max(high + 2, kAxisName));
    layout = { cell, left, top };
    const pixels = element("canvas");
    paint(pixels, keys.length, queries.length, (i) => view.weight(Math.floor(i / keys.length), i % keys.length));
    context.imageSmoothingEnabled = false;
    context.drawImage(pixels, left, top, wide, high);
    labels(context, queries, keys, step);
    if (cell >= 34) values(context);
    context.strokeStyle = colour("--line");
    context.strokeRect(left - 0.5, top - 0.5, wide + 1, high + 1);
    if (row === null) return;
    context.strokeStyle = colour("--accent");
    context.lineWidth = 2;
    context.strokeRect(left - 1, top + row * cell, wide + 2, cell);
  };
  const labels = (context, queries, keys, step) => {
    const { cell, left, top } = layout;
    context.font = `${Math.min(12, Math.max(10, cell - 1))}px ${kFont}`;
    const upright = (text, x, y, align, limit) => {
      context.save();
      context.translate(x, y);
      context.rotate(-Math.PI / 2);
      context.textAlign = align;
      context.fillText(text, 0, 0, limit);
      context.restore();
    };
    for (let q = 0; q < queries.length; q += step) {
      context.fillStyle = colour(q === row ? "--accent" : "--ink");
      context.textAlign = "right";
      context.fillText(queries[q], left - 5, top + (q + 0.5) * cell, left - 26);
    }
    context.fillStyle = colour("--ink");
    for (let k = 0; k < keys.length; k += step) upright(keys[k], left + (k + 0.5) * cell, top - 5, "left", top - 26);
    context.fillStyle = colour("--faint");
    context.font = `12px ${kFont}`;
    context.textAlign = "left";
    context.fillText(across, left, 9);
    upright(down, 9, top, "right");
  };
  const values = (context) => {
    const { cell, left, top } = layout;
    context.textAlign = "center";
    context.font = `11px ${kFont}`;
    view.queries.forEach((_, q) => view.keys.forEach((__, k) => {
      if (view.weight(q, k) < 0.005) return;
      context.fillStyle = inkOn(view.weight(q, k));
      context.fillText(view.weight(q, k).toFixed(2), left + (k + 0.5) * cell, top + (q + 0.5) * cell);
    }));
  };
  const cellAt = (event) => {
    const { x, y } = pointOn(canvas, event);
    const key = Math.floor((x - layout.left) / layout.cell), query = Math.floor((y - layout.top) / layout.cell);
    return query >= 0 && query < view.queries.length && key >= 0 && key < view.keys.length ? { query, key } : null;
  };
  canvas.addEventListener("pointermove", (event) => view && onHover(cellAt(event)));
  canvas.addEventListener("pointerleave", () => onHover(null));
  canvas.addEventListener("click", (event) => view && onPick(cellAt(event)));
  return {
    show(next) { view = next; draw(); },
    choose(query) { row = query; draw(); },
    draw,
  };
};
