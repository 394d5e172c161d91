
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = { map: 0, layer: data.layer, head: data.head, grid: !data.opensWithHead, query: -1 };
  const current = () => data.maps[state.map];

  // ---- The weights: two bytes each, the low one first.
  for (const map of data.maps) {
    const bytes = Uint8Array.from(atob(map.weights), (letter) => letter.charCodeAt(0));
    map.values = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < map.values.length; ++i) map.values[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
    delete map.weights;
  }
  const start = (map, layer, head) => (layer * map.heads + head) * map.queries.length * map.keys.length;
  const weight = (query, key) => {
    const map = current();
    return map.values[start(map, state.layer, state.head) + query * map.keys.length + key] / 65535;
  };
  const strongest = (query) => {
    let best = 0;
    for (let key = 1; key < current().keys.length; ++key) if (weight(query, key) > weight(query, best)) best = key;
    return best;
  };

  // ---- Colours: from the page's own to a strong blue, along the root of the weight, so that small ones show.
  const ramps = {
    light: [[255, 255, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]],
    dark: [[22, 29, 39], [24, 60, 98], [38, 104, 163], [98, 170, 226], [226, 243, 255]],
  };
  let palette;
  const mix = (stops, at) => {
    const i = Math.min(stops.length - 2, Math.floor(at));
    return stops[i].map((channel, c) => Math.round(channel + (stops[i + 1][c] - channel) * (at - i)));
  };
  const makePalette = () => {
    const stops = dark.matches ? ramps.dark : ramps.light;
    palette = Array.from({ length: 256 }, (_, i) => mix(stops, (i / 255) * (stops.length - 1)));
  };
  const level = (value) => Math.round(Math.sqrt(value) * 255);
  const rgb = (value) => `rgb(${palette[level(value)].join(",")})`;

  const paint = (canvas, width, height, value) => {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let i = 0; i < width * height; ++i) {
      const [r, g, b] = palette[level(value(i))];
      image.data.set([r, g, b, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  };

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const svgElement = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // ---- The grid of all heads.
  const fillGrid = () => {
    const map = current(), grid = byId("grid"), cells = map.queries.length * map.keys.length;
    grid.replaceChildren();
    grid.style.gridTemplateColumns = `auto repeat(${map.heads}, minmax(0, 6rem))`;
    grid.style.setProperty("--shape", String(Math.min(4, Math.max(0.25, map.keys.length / map.queries.length))));
    const names = element("div", { className: "row" }, element("span", { className: "name corner", textContent: "" }));
    names.setAttribute("role", "row");
    for (let head = 0; head < map.heads; ++head) {
      names.append(element("span", { className: "name", textContent: String(head) }));
      names.lastChild.setAttribute("role", "columnheader");
    }
    grid.append(names);
    for (let layer = 0; layer < map.layers; ++layer) {
      const row = element("div", { className: "row" }, element("span", { className: "name", textContent: String(layer) }));
      row.setAttribute("role", "row");
      row.firstChild.setAttribute("role", "rowheader");
      for (let head = 0; head < map.heads; ++head) {
        const canvas = element("canvas"), from = start(map, layer, head);
        paint(canvas, map.keys.length, map.queries.length, (i) => map.values[from + i] / 65535);
        const cell = element("button", { type: "button", title: `layer ${layer}, head ${head}` }, canvas);
        cell.setAttribute("aria-label", `Layer ${layer}, head ${head}: ${patternText(map, layer, head)}`);
        cell.addEventListener("click", () => go({ layer, head, grid: false }));
        const slot = element("div", {}, cell);
        slot.setAttribute("role", "gridcell");
        slot.style.display = "grid";
        row.append(slot);
      }
      grid.append(row);
    }
  };
  const markCurrent = (focus) => {
    byId("grid").querySelectorAll("button").forEach((button, i) => {
      const here = i === state.layer * current().heads + state.head;
      button.setAttribute("aria-current", String(here));
      button.tabIndex = here ? 0 : -1;
      if (here && focus) button.focus();
    });
  };

  // ---- One head: what it does, in numbers.
  const patternNames = ["entropy", "itself", "previous", "next", "first token"];
  const patternOf = (map, layer, head) => map.patterns[layer * map.heads + head]
    .map((value, i) => [patternNames[i], value]).filter(([, value]) => value !== null);
  const written = (name, value) => name === "entropy" ? `${value.toFixed(2)} bits` : value.toFixed(3);
  const patternText = (map, layer, head) =>
    patternOf(map, layer, head).map(([name, value]) => `${name} ${written(name, value)}`).join(", ");

  const fillPattern = () => {
    const parts = patternOf(current(), state.layer, state.head).map(([name, value]) => element("span", {},
      `${name} `, element("b", { textContent: written(name, value) })));
    byId("pattern").replaceChildren(...parts.flatMap((part, i) => i > 0 ? [" · ", part] : [part]));
  };

  // ---- One head: the heat map.
  const layout = { cell: 0, left: 0, top: 0 };
  const heatLayout = (context) => {
    const map = current();
    context.font = "13px system-ui, 'DejaVu Sans', sans-serif";
    const widest = (tokens) => Math.min(140, Math.max(...tokens.map((t) => context.measureText(t).width)));
    layout.left = Math.ceil(widest(map.queries)) + 10;
    layout.top = Math.ceil(widest(map.keys)) + 12;
    const wide = Math.min(document.documentElement.clientWidth - 40, 760) - layout.left;
    layout.cell = Math.floor(Math.max(12, Math.min(46, wide / map.keys.length)));
  };
  const drawHeat = () => {
    const map = current(), canvas = byId("heat"), context = canvas.getContext("2d");
    heatLayout(context);
    const { cell, left, top } = layout, style = getComputedStyle(document.documentElement);
    const width = left + cell * map.keys.length + 1, height = top + cell * map.queries.length + 1;
    // Browsers refuse a canvas beyond some 16,000 pixels.
    const scale = Math.min(devicePixelRatio || 1, 16000 / Math.max(width, height));
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    context.font = `${Math.min(13, cell - 2)}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    const ink = style.getPropertyValue("--ink"), accent = style.getPropertyValue("--accent");
    map.queries.forEach((token, q) => {
      context.fillStyle = q === state.query ? accent : ink;
      context.textAlign = "right";
      context.fillText(token, left - 6, top + (q + 0.5) * cell, left - 8);
    });
    map.keys.forEach((token, k) => {
      context.save();
      context.translate(left + (k + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillStyle = ink;
      context.fillText(token, 0, 0, top - 10);
      context.restore();
    });
    drawCells(context);
    context.strokeStyle = style.getPropertyValue("--line");
    context.strokeRect(left + 0.5, top + 0.5, cell * map.keys.length, cell * map.queries.length);
    if (state.query >= 0) {
      context.strokeStyle = accent;
      context.lineWidth = 2;
      context.strokeRect(left, top + state.query * cell, cell * map.keys.length, cell);
    }
    canvas.setAttribute("aria-label", `Heat map of layer ${state.layer}, head ${state.head}, ` +
      `${map.queries.length} by ${map.keys.length} tokens; ${patternText(map, state.layer, state.head)}`);
  };
  const drawCells = (context) => {
    const map = current(), { cell, left, top } = layout;
    context.textAlign = "center";
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    for (let q = 0; q < map.queries.length; ++q) {
      for (let k = 0; k < map.keys.length; ++k) {
        const value = weight(q, k);
        context.fillStyle = rgb(value);
        context.fillRect(left + k * cell, top + q * cell, cell, cell);
        if (cell < 34) continue;
        const [r, g, b] = palette[level(value)];
        context.fillStyle = 0.3 * r + 0.59 * g + 0.11 * b > 140 ? "#10151c" : "#f4f7fb";
        context.fillText(value.toFixed(2), left + (k + 0.5) * cell, top + (q + 0.5) * cell);
      }
    }
  };
  const cellAt = (event) => {
    const box = byId("heat").getBoundingClientRect(), map = current();
    const key = Math.floor((event.clientX - box.left - layout.left) / layout.cell);
    const query = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
    const inside = query >= 0 && query < map.queries.length && key >= 0 && key < map.keys.length;
    return inside ? { query, key } : null;
  };
  const say = (query, key) => {
    const map = current();
    byId("readout").textContent =
      `${query} ${map.queries[query]} → ${key} ${map.keys[key]}: ${weight(query, key).toFixed(4)}`;
  };

  // ---- One head: lines between two columns of tokens.
  const kRow = 22, kFaintest = 0.04;
  const drawLines = () => {
    const map = current(), svg = byId("lines"), rows = Math.max(map.queries.length, map.keys.length);
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = "13px system-ui, 'DejaVu Sans', sans-serif";
    const widest = (tokens) => Math.min(160, Math.ceil(Math.max(...tokens.map((t) => measure.measureText(t).width))));
    const left = widest(map.queries) + 8, right = widest(map.keys) + 8;
    const room = document.documentElement.clientWidth - 40 - left - right;
    const middle = Math.max(90, Math.min(220, room)), width = left + middle + right;
    svg.replaceChildren();
    svg.setAttribute("width", width);
    svg.setAttribute("height", rows * kRow + 8);
    svg.setAttribute("aria-label", `Lines from each token to those it attends to, ${map.queries.length} tokens`);
    const y = (i) => i * kRow + kRow / 2 + 4;
    for (let q = 0; q < map.queries.length; ++q) {
      if (state.query >= 0 && state.query !== q) continue;
      for (let k = 0; k < map.keys.length; ++k) {
        const value = weight(q, k);
        if (value < kFaintest) continue;
        const bend = left + middle / 2;
        svg.append(svgElement("path", {
          d: `M${left},${y(q)} C${bend},${y(q)} ${bend},${y(k)} ${left + middle},${y(k)}`,
          "stroke-opacity": Math.min(1, 0.08 + value).toFixed(3), "stroke-width": (0.6 + 3.4 * value).toFixed(2),
        }));
      }
    }
    const column = (tokens, x, anchor, choose) => tokens.forEach((token, i) => {
      const label = svgElement("text", { x, y: y(i) + 4, "text-anchor": anchor });
      label.textContent = token;
      if (choose && i === state.query) label.classList.add("chosen");
      if (choose) label.addEventListener("click", () => choose(i));
      svg.append(label);
    });
    column(map.queries, left - 6, "end", (i) => chooseQuery(i === state.query ? -1 : i));
    column(map.keys, left + middle + 6, "start", null);
  };
  const chooseQuery = (query) => {
    state.query = query;
    drawHeat();
    drawLines();
    if (query >= 0) say(query, strongest(query));
    else byId("readout").textContent = "";
  };

  const fillMost = () => {
    const map = current();
    byId("most").replaceChildren(...map.queries.map((token, query) => {
      const key = strongest(query);
      const cells = [String(query), token, `${key} ${map.keys[key]}`, weight(query, key).toFixed(3)];
      return element("tr", {}, ...cells.map((textContent) => element("td", { textContent })));
    }));
  };

  // ---- Moving about.
  const options = (select, count, chosen) => {
    select.replaceChildren(...Array.from({ length: count }, (_, i) => element("option", { textContent: String(i) })));
    select.selectedIndex = chosen;
  };
  const show = (focus) => {
    const map = current();
    byId("map").selectedIndex = state.map;
    options(byId("layer"), map.layers, state.layer);
    options(byId("head"), map.heads, state.head);
    byId("grid-view").hidden = !state.grid;
    byId("head-view").hidden = state.grid;
    byId("grid-button").setAttribute("aria-pressed", String(state.grid));
    byId("head-button").setAttribute("aria-pressed", String(!state.grid));
    byId("readout").textContent = "";
    markCurrent(focus && state.grid);
    if (state.grid) return;
    fillPattern();
    drawHeat();
    drawLines();
    fillMost();
  };
  const go = (change, focus = false) => {
    const before = state.map;
    Object.assign(state, change);
    const map = current();
    state.layer = Math.max(0, Math.min(map.layers - 1, state.layer));
    state.head = Math.max(0, Math.min(map.heads - 1, state.head));
    state.query = -1;
    if (state.map !== before) fillGrid();
    show(focus);
  };
  const redraw = () => {
    makePalette();
    paint(byId("ramp"), 128, 1, (i) => (i / 127) ** 2);
    fillGrid();
    show(false);
  };

  const moves = {
    ArrowLeft: () => go({ head: state.head - 1 }, true),
    ArrowRight: () => go({ head: state.head + 1 }, true),
    ArrowUp: () => go({ layer: state.layer - 1 }, true),
    ArrowDown: () => go({ layer: state.layer + 1 }, true),
    g: () => go({ grid: !state.grid }, true),
    m: () => go({ map: (state.map + 1) % data.maps.length }, true),
    j: () => state.grid || chooseQuery(Math.min(current().queries.length - 1, state.query + 1)),
    k: () => state.grid || chooseQuery(Math.max(0, state.query - 1)),
    Escape: () => state.grid || chooseQuery(-1),
    Enter: () => go({ grid: false }),
  };
  document.addEventListener("keydown", (event) => {
    const inControl = ["SELECT", "SUMMARY"].includes(event.target.tagName);
    const pressesButton = event.key === "Enter" && event.target.tagName === "BUTTON";
    if (inControl || pressesButton || event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  byId("heat").addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (cell) say(cell.query, cell.key);
  });
  byId("heat").addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    chooseQuery(cell.query === state.query ? -1 : cell.query);
    say(cell.query, cell.key);
  });
  byId("map").addEventListener("change", (event) => go({ map: event.target.selectedIndex }));
  byId("layer").addEventListener("change", (event) => go({ layer: event.target.selectedIndex }));
  byId("head").addEventListener("change", (event) => go({ head: event.target.selectedIndex }));
  byId("grid-button").addEventListener("click", () => go({ grid: true }));
  byId("head-button").addEventListener("click", () => go({ grid: false }));
  dark.addEventListener("change", redraw);
  let resizing = 0;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => state.grid || chooseQuery(state.query), 100);
  });

  byId("model").textContent = data.model;
  byId("text").textContent = data.text;
  document.title = `Attention: ${data.model}`;
  byId("map").replaceChildren(...data.maps.map((map) => element("option", { textContent: map.name })));
  byId("map-picker").hidden = byId("map-keys").hidden = data.maps.length < 2;
  redraw();
