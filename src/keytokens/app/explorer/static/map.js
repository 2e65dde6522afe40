// The map of all tokens: value to the right, attention upwards, the two numbers that a token has. Drag, wheel and
// pinch, or the keyboard, move it.

import { colour, h, oncePerFrame } from "./dom.js";
import { oneLine } from "./format.js";
import { ticksUpTo } from "./charts.js";

const LEFT_EDGE = 48;
const LOW_EDGE = 34;
const EDGE = 8;
const REACH = 14; // pixels from the pointer within which a token is found
const LABELS = 60; // names written at most
export const HUES = ["n-solid", "p-solid", "c3", "c4", "c5", "c6", "c7", "c8", "p-solid"];
const PLAIN = 7; // the sign of every class where there are more than six
const FOCUSED = 8;

/** The shape of a class, around (x, y): nothing is said by colour alone. */
const SHAPES = [
  (path, x, y, r) => triangle(path, x, y, r, 1),
  (path, x, y, r) => path.rect(x - r, y - r, 2 * r, 2 * r),
  (path, x, y, r) => polygon(path, x, y, r * 1.3, 4, 0),
  (path, x, y, r) => triangle(path, x, y, r, -1),
  (path, x, y, r) => {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 7);
  },
  (path, x, y, r) => polygon(path, x, y, r * 1.2, 5, -Math.PI / 2),
  (path, x, y, r) => {
    path.rect(x - r, y - r / 2.5, 2 * r, r / 1.25);
    path.rect(x - r / 2.5, y - r, r / 1.25, 2 * r);
  },
  (path, x, y, r) => polygon(path, x, y, r * 1.2, 6, 0),
  (path, x, y, r) => polygon(path, x, y, r * 1.2, 6, 0),
];
export const SHAPE_SIGNS = ["▲", "■", "◆", "▼", "●", "⬟", "✚", "⬢"];

function triangle(path, x, y, r, up) {
  path.moveTo(x, y - up * r * 1.3);
  path.lineTo(x + r * 1.2, y + up * r);
  path.lineTo(x - r * 1.2, y + up * r);
  path.closePath();
}

function polygon(path, x, y, r, corners, turn) {
  for (let k = 0; k < corners; k++) {
    const angle = turn + (2 * Math.PI * k) / corners;
    path[k ? "lineTo" : "moveTo"](x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
  path.closePath();
}

export class TokenMap {
  /** points: {x, y, kind: arrays over the tokens, order: most important first, root: x is a root}; signs: of classes. */
  constructor({ points, signs, name, nameX, onHover, onPick }) {
    Object.assign(this, { points, signs, name, nameX, onHover, onPick });
    this.focus = -1; // the class in colour, where classes have no signs of their own
    this.shown = null; // a Uint8Array of the tokens to draw, or null for all
    this.picked = -1;
    this.hovered = -1;
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map of tokens",
      "aria-label":
        "Map of all tokens: value to the right, attention upwards. Arrow keys go to the next token in that direction, plus and minus zoom, shift and arrow keys move the map, zero shows everything. The list beside it holds the same tokens.",
      keydown: (event) => this.#pressed(event),
      pointerdown: (event) => this.#grabbed(event),
      pointermove: (event) => this.#dragged(event),
      pointerup: (event) => this.#released(event),
      pointercancel: () => this.pointers.clear(),
      pointerleave: () => this.#hover(-1),
    });
    this.canvas.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    this.sheet = h("canvas");
    this.stamps = new Map();
    this.pointers = new Map();
    this.redraw = oncePerFrame(() => this.draw());
    this.whole = boundsOf(points);
    this.view = { ...this.whole };
    new ResizeObserver(this.redraw).observe(this.canvas);
  }

  set(points, nameX) {
    this.points = points;
    this.nameX = nameX;
    this.whole = boundsOf(points);
    this.reset();
  }

  reset() {
    this.view = { ...this.whole };
    this.redraw();
  }

  get room() {
    return { across: this.canvas.clientWidth - LEFT_EDGE - EDGE, up: this.canvas.clientHeight - LOW_EDGE - EDGE };
  }

  /** Where tokens stand: {x, y: value or attention -> pixels}; made once for many of them. */
  places() {
    const { view } = this;
    const { across, up } = this.room;
    const wide = across / (view.right - view.left);
    const tall = up / (view.high - view.low);
    return {
      x: (value) => LEFT_EDGE + (value - view.left) * wide,
      y: (value) => EDGE + up - (value - view.low) * tall,
    };
  }

  screenX(value) {
    return this.places().x(value);
  }

  screenY(value) {
    return this.places().y(value);
  }

  draw() {
    const { canvas } = this;
    const scale = Math.min(2, window.devicePixelRatio || 1);
    const width = canvas.clientWidth,
      height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.#axes(pen, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT_EDGE, EDGE, width - LEFT_EDGE - EDGE, height - LOW_EDGE - EDGE);
    pen.clip();
    const near = this.#points(pen, scale);
    this.#names(pen, near);
    this.#rings(pen);
    pen.restore();
  }

  #axes(pen, width, height) {
    const { view } = this;
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = colour("soft");
    pen.strokeStyle = colour("line");
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.beginPath();
    for (const [share, linear] of ticksUpTo(view.right, view.left)) {
      const at = view.left + share * (view.right - view.left);
      const name = this.points.root ? Number((at * Math.abs(at)).toPrecision(3)).toLocaleString("en-GB") : linear;
      const x = LEFT_EDGE + share * this.room.across;
      pen.moveTo(x, EDGE);
      pen.lineTo(x, height - LOW_EDGE);
      pen.fillText(name, x, height - LOW_EDGE + 14);
    }
    pen.textAlign = "right";
    for (const [share, name] of ticksUpTo(view.high, view.low)) {
      const y = EDGE + (1 - share) * this.room.up;
      pen.moveTo(LEFT_EDGE, y);
      pen.lineTo(width - EDGE, y);
      pen.fillText(name, LEFT_EDGE - 6, y + 4);
    }
    pen.stroke();
    pen.textAlign = "center";
    pen.fillText(this.nameX, LEFT_EDGE + this.room.across / 2, height - 5);
    pen.save();
    pen.translate(11, EDGE + this.room.up / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText("attention", 0, 0);
    pen.restore();
  }

  /**
   * Draws the tokens in sight, least important first; returns the most important ones in sight. Shapes are stamped
   * pixel by pixel: paths of a hundred thousand pieces would take seconds.
   */
  #points(pen, scale) {
    const { x, y, kind, order } = this.points;
    const { view, shown } = this;
    const place = this.places();
    const inSight = [];
    const zoom = (this.whole.right - this.whole.left) / (view.right - view.left);
    const size = Math.min(5, 1.4 + 0.55 * Math.log2(Math.max(1, zoom)) + (order.length < 3000 ? 1.2 : 0));
    const r = Math.round(4 * size * scale) / 4;
    const stamps = this.signs?.map((sign) => this.#stamp(sign, r));
    const [plain, focused] = [this.#stamp(PLAIN, r), this.#stamp(FOCUSED, r)];
    const sheet = new ImageData(this.canvas.width, this.canvas.height);
    const pixels = new Uint32Array(sheet.data.buffer);
    for (let i = order.length - 1; i >= 0; i--) {
      const s = order[i];
      if (shown && !shown[s]) continue;
      if (x[s] < view.left || x[s] > view.right || y[s] < view.low || y[s] > view.high) continue;
      stampAt(
        pixels,
        sheet,
        stamps ? stamps[kind[s]] : kind[s] === this.focus ? focused : plain,
        place.x(x[s]) * scale,
        place.y(y[s]) * scale,
      );
      inSight.push(s);
    }
    this.sheet.width = sheet.width;
    this.sheet.height = sheet.height;
    this.sheet.getContext("2d").putImageData(sheet, 0, 0);
    pen.globalAlpha = inSight.length > 5000 ? 0.75 : 0.9;
    pen.drawImage(this.sheet, 0, 0, sheet.width / scale, sheet.height / scale);
    pen.globalAlpha = 1;
    return inSight.slice(-400).reverse();
  }

  /** One shape as pixels: {side, offsets of those that are inside, their colour}. */
  #stamp(shape, r) {
    const hue = colour(HUES[shape]);
    const key = `${shape} ${r} ${hue}`;
    if (!this.stamps.has(key)) {
      const side = 2 * Math.ceil(r * 1.4) + 1;
      const small = h("canvas", { width: side, height: side });
      const pen = small.getContext("2d", { willReadFrequently: true });
      const path = new Path2D();
      SHAPES[shape](path, side / 2, side / 2, r);
      pen.fillStyle = hue;
      pen.fill(path);
      const { data } = pen.getImageData(0, 0, side, side);
      const inside = [];
      for (let p = 0; p < side * side; p++) if (data[4 * p + 3] >= 110) inside.push([p % side, Math.floor(p / side)]);
      const middle = 4 * (Math.floor(side / 2) * side + Math.floor(side / 2));
      const solid = new Uint8ClampedArray([data[middle], data[middle + 1], data[middle + 2], 255]);
      this.stamps.set(key, { half: Math.floor(side / 2), inside, ink: new Uint32Array(solid.buffer)[0] });
    }
    return this.stamps.get(key);
  }

  /** Names of the most important tokens, as far as they do not cover each other. */
  #names(pen, candidates) {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillStyle = colour("ink");
    pen.strokeStyle = colour("paper");
    pen.lineWidth = 3;
    const taken = [];
    const wanted = [this.picked, ...candidates].filter((s) => s >= 0);
    for (const s of wanted) {
      if (taken.length >= LABELS) break;
      const name = oneLine(this.name(s), 24);
      const at = this.screenX(this.points.x[s]),
        py = this.screenY(this.points.y[s]) + 4;
      const width = pen.measureText(name).width;
      const px = at + 6 + width > this.canvas.clientWidth - EDGE ? at - 6 - width : at + 6;
      const box = { left: px - 2, right: px + width + 4, low: py - 12, high: py + 4 };
      if (taken.some((one) => one.left < box.right && box.left < one.right && one.low < box.high && box.low < one.high))
        continue;
      taken.push(box);
      pen.strokeText(name, px, py);
      pen.fillText(name, px, py);
    }
  }

  #rings(pen) {
    for (const [s, r] of [
      [this.hovered, 7],
      [this.picked, 9],
    ]) {
      if (s < 0) continue;
      pen.strokeStyle = colour("ink");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(this.screenX(this.points.x[s]), this.screenY(this.points.y[s]), r, 0, 7);
      pen.stroke();
    }
  }

  /** The token nearest to a place on the screen, -1 for none in reach. */
  nearest(px, py) {
    const { x, y, order } = this.points;
    const place = this.places();
    let best = -1,
      least = REACH * REACH;
    for (const s of order) {
      if (this.shown && !this.shown[s]) continue;
      const dx = place.x(x[s]) - px,
        dy = place.y(y[s]) - py;
      const far = dx * dx + dy * dy;
      if (far < least) {
        least = far;
        best = s;
      }
    }
    return best;
  }

  zoom(factor, px = LEFT_EDGE + this.room.across / 2, py = EDGE + this.room.up / 2) {
    const { view, whole } = this;
    const fx = (px - LEFT_EDGE) / this.room.across,
      fy = 1 - (py - EDGE) / this.room.up;
    const width = clipped((view.right - view.left) / factor, whole.right - whole.left);
    const height = clipped((view.high - view.low) / factor, whole.high - whole.low);
    view.left += fx * (view.right - view.left - width);
    view.right = view.left + width;
    view.low += fy * (view.high - view.low - height);
    view.high = view.low + height;
    this.redraw();
  }

  move(dx, dy) {
    const { view } = this;
    const x = (dx / this.room.across) * (view.right - view.left),
      y = (dy / this.room.up) * (view.high - view.low);
    view.left -= x;
    view.right -= x;
    view.low += y;
    view.high += y;
    this.redraw();
  }

  /** Marks a token and brings it into sight. */
  pick(s) {
    this.picked = s;
    const { view } = this;
    const x = this.points.x[s],
      y = this.points.y[s];
    if (x < view.left || x > view.right || y < view.low || y > view.high) {
      const width = view.right - view.left,
        height = view.high - view.low;
      this.view = { left: x - width / 2, right: x + width / 2, low: y - height / 2, high: y + height / 2 };
    }
    this.redraw();
  }

  /** The nearest token in a direction: (1, 0) to the right, (0, 1) upwards. */
  next(dx, dy) {
    const { x, y, order } = this.points;
    const from = this.picked;
    if (from < 0) return order.find((s) => !this.shown || this.shown[s]) ?? -1;
    const place = this.places();
    const fx = place.x(x[from]);
    const fy = place.y(y[from]);
    let best = -1;
    let least = Infinity;
    for (const s of order) {
      if (s === from || (this.shown && !this.shown[s])) continue;
      const right = place.x(x[s]) - fx;
      const up = fy - place.y(y[s]);
      const along = right * dx + up * dy;
      if (along <= 0.5) continue;
      const across = Math.abs(right * dy) + Math.abs(up * dx);
      const far = along + 3 * across;
      if (far < least) {
        least = far;
        best = s;
      }
    }
    return best;
  }

  #hover(s) {
    if (s === this.hovered) return;
    this.hovered = s;
    this.canvas.classList.toggle("over", s >= 0);
    this.onHover(s, s >= 0 ? { x: this.screenX(this.points.x[s]), y: this.screenY(this.points.y[s]) } : null);
    this.redraw();
  }

  #wheeled(event) {
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
  }

  #grabbed(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.travelled = 0;
  }

  #dragged(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.#hover(this.nearest(event.offsetX, event.offsetY));
      return;
    }
    const dx = event.offsetX - before.x,
      dy = event.offsetY - before.y;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const far = Math.hypot(event.offsetX - other.x, event.offsetY - other.y);
      this.zoom(far / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y)), other.x, other.y);
    } else this.move(dx, dy);
    this.travelled += Math.hypot(dx, dy);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  }

  #released(event) {
    this.pointers.delete(event.pointerId);
    if (this.travelled > 4) return;
    const s = this.nearest(event.offsetX, event.offsetY);
    if (s >= 0) this.onPick(s);
  }

  #pressed(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const way = ways[event.key];
    if (way && event.shiftKey) this.move(-60 * way[0], 60 * way[1]);
    else if (way) {
      const s = this.next(...way);
      if (s >= 0) this.onPick(s);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }
}

function stampAt(pixels, { width, height }, { half, inside, ink }, px, py) {
  const left = Math.round(px) - half;
  const top = Math.round(py) - half;
  for (const [dx, dy] of inside) {
    const x = left + dx;
    const y = top + dy;
    if (x >= 0 && x < width && y >= 0 && y < height) pixels[y * width + x] = ink;
  }
}

function clipped(span, whole) {
  return Math.min(whole * 1.5, Math.max(whole / 5000, span));
}

function boundsOf({ x, y, order }) {
  let left = Infinity,
    right = -Infinity,
    low = Infinity,
    high = -Infinity;
  for (const s of order) {
    left = Math.min(left, x[s]);
    right = Math.max(right, x[s]);
    low = Math.min(low, y[s]);
    high = Math.max(high, y[s]);
  }
  if (!order.length) [left, right, low, high] = [-1, 1, -1, 1];
  const wide = 0.04 * (right - left) || 1,
    tall = 0.04 * (high - low) || 1;
  return { left: left - wide, right: right + wide, low: low - tall, high: high + tall };
}
