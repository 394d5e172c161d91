// ---- Lines between two columns of tokens. As in bertviz, a token under the pointer shows only its lines.
const kLineRow = 22, kFaintest = 0.03;

const makeLines = (canvas, { onHover = () => {}, onPick = () => {} } = {}) => {
  let view = null, at = null, chosen = null;  // {side: 0 query or 1 key, index}
  let left = 0, middle = 0, right = 0;
  const y = (i) => i * kLineRow + kLineRow / 2 + 2;
  const shown = (side, index) => !view.hidden?.(side, index);

  const layOut = () => {
    const context = canvas.getContext("2d");
    context.font = `13px ${kFont}`;
    const columnOf = (tokens) => Math.min(150, Math.max(16, widest(context, tokens))) + 14;
    left = Math.ceil(columnOf(view.queries));
    right = Math.ceil(columnOf(view.keys));
    const room = widthAround(canvas) - left - right;
    middle = Math.max(70, Math.min(260, room - 4));
    return prepared(canvas, left + middle + right, Math.max(view.queries.length, view.keys.length) * kLineRow + 4);
  };
  const line = (context, query, key, weight) => {
    context.globalAlpha = Math.min(1, 0.08 + weight);
    context.lineWidth = 0.6 + 3.6 * weight;
    context.beginPath();
    context.moveTo(left, y(query));
    context.bezierCurveTo(left + middle / 2, y(query), left + middle / 2, y(key), left + middle, y(key));
    context.stroke();
  };
  const column = (context, tokens, side, weightAt) => tokens.forEach((token, i) => {
    if (!shown(side, i)) return;
    const held = (at ?? chosen)?.side === side && (at ?? chosen).index === i;
    const weight = weightAt(side, i);
    const x = side === 0 ? 0 : left + middle;
    if (weight > 0) {
      context.fillStyle = rgb(weight);
      context.fillRect(x, y(i) - kLineRow / 2 + 1, side === 0 ? left - 2 : right, kLineRow - 2);
    }
    context.fillStyle = weight > 0 ? inkOn(weight) : colour(held ? "--accent" : "--ink");
    context.font = `${held ? "600 " : ""}13px ${kFont}`;
    context.textAlign = side === 0 ? "right" : "left";
    context.fillText(token, side === 0 ? left - 6 : left + middle + 6, y(i), (side === 0 ? left : right) - 8);
  });
  const draw = () => {
    if (!view) return;
    const context = layOut(), one = at ?? chosen;
    for (const { weight: weightOf, colour: ink } of view.heads ?? [{ weight: view.weight, colour: colour("--accent") }]) {
      context.strokeStyle = ink;
      drawLines(context, one, weightOf);
    }
    context.globalAlpha = 1;
    const strengthBy = (weightOf) => (side, i) => (!one || side === one.side ? 0 : one.side === 0 ? weightOf(one.index, i) : weightOf(i, one.index));
    if (view.heads) for (const side of [0, 1]) stripes(context, side, view.heads.map((head) => ({ ...head, strength: strengthBy(head.weight) })));
    const strength = view.heads ? () => 0 : strengthBy(view.weight);
    column(context, view.queries, 0, strength);
    column(context, view.keys, 1, strength);
  };
  const drawLines = (context, one, weightOf) => {
    for (let q = 0; q < view.queries.length; ++q) {
      if (!shown(0, q) || (one?.side === 0 && one.index !== q)) continue;
      for (let k = 0; k < view.keys.length; ++k) {
        if (!shown(1, k) || (one?.side === 1 && one.index !== k)) continue;
        const weight = weightOf(q, k);
        if (weight >= (one ? 0.005 : kFaintest)) line(context, q, k, weight);
      }
    }
  };
  // Beside the token that is held, a stripe for each of several heads.
  const stripes = (context, side, heads) => (side === 0 ? view.queries : view.keys).forEach((_, i) => heads.forEach((head, h) => {
    const wide = (side === 0 ? left - 2 : right) / heads.length;
    context.globalAlpha = 0.6 * head.strength(side, i);
    context.fillStyle = head.colour;
    if (shown(side, i)) context.fillRect((side === 0 ? 0 : left + middle) + h * wide, y(i) - kLineRow / 2 + 1, wide, kLineRow - 2);
    context.globalAlpha = 1;
  }));

  let waiting = false;
  const drawSoon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  const tokenAt = (event) => {
    const { x, y: down } = pointOn(canvas, event), index = Math.floor((down - 2) / kLineRow);
    const side = x < left + middle / 2 ? 0 : 1;
    const tokens = side === 0 ? view.queries : view.keys;
    return index >= 0 && index < tokens.length && shown(side, index) ? { side, index } : null;
  };
  const hold = (token) => {
    if (at?.side === token?.side && at?.index === token?.index) return;
    at = token;
    onHover(at ?? chosen);
    drawSoon();
  };
  canvas.addEventListener("pointermove", (event) => view && hold(tokenAt(event)));
  canvas.addEventListener("pointerleave", () => hold(null));
  canvas.addEventListener("click", (event) => {
    const token = view && tokenAt(event);
    chosen = token && chosen?.side === token.side && chosen.index === token.index ? null : token;
    onPick(chosen);
    onHover(at ?? chosen);
    drawSoon();
  });
  return {
    // {queries, keys, weight(query, key), hidden(side, index), heads: several {weight, colour} in place of weight}
    show(next) { view = next; at = null; draw(); },
    choose(query) { chosen = query === null ? null : { side: 0, index: query }; onHover(chosen); drawSoon(); },
    get chosen() { return chosen; },
    draw,
  };
};
