// One explanation as a picture: the same shapes as SVG or PNG, or as a page that stands alone. Nothing is loaded.

import { download, h } from "./dom.js";
import { broken, clean, oneLine, percent } from "./format.js";
import { LEVELS, levelOf } from "./marks.js";

const WIDTH = 760;
const MARGIN = 28;
const LINE = 30;
const SIZE = 17;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const INK = "#15181d";
const SOFT = "#59616d";
const PAPER = "#ffffff";
const SIDES = { p: "38,109,235", n: "238,119,8" };
const MOST_LINES = 400; // of text in a picture; the rest is counted

/** {width, height, shapes, title}: rectangles, lines and texts, placed; words of the Set `hidden` are struck out. */
export function pictureOf(e, hidden, marks, { label, rival }) {
  const pen = new Pen();
  const name = oneLine(e.model.classes[e.label].name);
  pen.paragraph(`${name} ${percent(e.probability)}`, { size: 28, weight: 700 });
  pen.space(8);
  pen.paragraph(clean(e.sentence), { size: 15 });
  pen.space(12);
  markedText(pen, e, hidden, marks);
  pen.space(14);
  const [own, other] = [label, rival].map((k) => oneLine(e.model.classes[k].name, 30));
  const says = [`blue, upright: for ${own}`, `orange, slanted: for ${other}`, "line: keep these and it stays"];
  pen.paragraph([...says, "dots: mask these and it changes"].join(" · "), { size: 12, fill: SOFT });
  return {
    width: WIDTH,
    height: Math.ceil(pen.y + MARGIN / 2),
    shapes: pen.shapes,
    title: `${name} (${percent(e.probability)})`,
  };
}

class Pen {
  constructor() {
    this.shapes = [];
    this.x = MARGIN;
    this.y = 0;
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  space(pixels) {
    this.y += pixels;
  }

  measure(text, { size, weight = 400, slanted = false }) {
    this.ruler.font = fontOf({ size, weight, slanted });
    return this.ruler.measureText(text).width;
  }

  /** Words one after the other, broken where the line ends. */
  paragraph(text, style) {
    const look = { fill: INK, ...style };
    const step = look.size * 1.45;
    const blank = this.measure(" ", look);
    this.y += step;
    this.x = MARGIN;
    for (const word of text.split(/\s+/)) {
      for (const part of this.fitting(word, look)) {
        const width = this.measure(part, look);
        if (this.x > MARGIN && this.x + width > WIDTH - MARGIN) {
          this.x = MARGIN;
          this.y += step;
        }
        this.shapes.push({ kind: "text", x: this.x, y: this.y, width, text: part, ...look });
        this.x += width;
      }
      this.x += blank;
    }
    this.x = MARGIN;
  }

  /** A word in parts that fit a line. */
  fitting(word, look) {
    const room = WIDTH - 2 * MARGIN;
    if (word.length < 40 || this.measure(word.slice(0, 400), look) <= room) return [word.slice(0, 400)];
    const letters = Array.from(word.slice(0, 400));
    const parts = [];
    for (let i = 0; i < letters.length; i += 40) parts.push(letters.slice(i, i + 40).join(""));
    return parts;
  }
}

function markedText(pen, e, hidden, marks) {
  const look = { size: SIZE };
  const blank = pen.measure(" ", look);
  const text = clean(e.text);
  let lines = 1;
  let at = 0;
  pen.y += LINE;
  const newLine = () => {
    pen.x = MARGIN;
    pen.y += LINE;
    lines++;
  };
  const put = (piece, part, i) => {
    const known = part !== null && part.known[i];
    const own = {
      size: SIZE,
      slanted: known && part.ink[i] < 0 && levelOf(part, i, marks.most) > 0,
      fill: known ? INK : SOFT,
    };
    for (const bit of pen.fitting(piece, own)) {
      const width = pen.measure(bit, own);
      if (pen.x > MARGIN && pen.x + width > WIDTH - MARGIN) newLine();
      if (lines > MOST_LINES) return;
      if (known) mark(pen, part, i, marks.most, width);
      pen.shapes.push({ kind: "text", x: pen.x, y: pen.y, width, text: bit, ...own });
      if (part !== null && hidden.has(i))
        pen.shapes.push({ kind: "line", x: pen.x, y: pen.y - 6, width, dashed: false });
      pen.x += width;
    }
  };
  e.words.forEach(({ start, end }, i) => {
    if (lines > MOST_LINES) return;
    gapLines(
      text.slice(at, start),
      newLine,
      (piece) => put(piece, null, i),
      () => {
        if (marks.gap.known[i] && pen.x + blank < WIDTH - MARGIN) mark(pen, marks.gap, i, marks.most, blank);
        pen.x += blank;
      },
    );
    put(text.slice(start, end), marks.word, i);
    at = end;
  });
  if (lines <= MOST_LINES)
    gapLines(
      text.slice(at),
      newLine,
      (piece) => put(piece, null, 0),
      () => (pen.x += blank),
    );
  else pen.paragraph("… the rest of the text is left out of the picture", { size: 13, fill: SOFT });
  pen.x = MARGIN;
}

/** What stands between two words: line ends, blanks and punctuation. */
function gapLines(gap, newLine, put, space) {
  let ends = 0;
  for (const piece of broken(gap.slice(0, 2000)).split(/(\s+)/)) {
    if (piece.includes("\n")) {
      if (ends++ < 2) newLine();
    } else if (piece.trim() === "") {
      if (piece) space();
    } else put(piece);
  }
}

function mark(pen, part, i, most, width) {
  const level = levelOf(part, i, most);
  const { x, y } = pen;
  if (level > 0) {
    const fill = SIDES[part.ink[i] >= 0 ? "p" : "n"];
    pen.shapes.push({
      kind: "rect",
      x,
      y: y - SIZE,
      width,
      height: SIZE * 1.35,
      fill,
      opacity: (0.72 * level) / LEVELS,
    });
  }
  if (part.kept[i]) pen.shapes.push({ kind: "line", x, y: y + 4, width, dashed: false });
  if (part.gone[i]) pen.shapes.push({ kind: "line", x, y: y + 8, width, dashed: true });
}

const fontOf = ({ size, weight = 400, slanted = false }) => `${slanted ? "italic " : ""}${weight} ${size}px ${FONT}`;
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text) =>
  text.replace(/[&<>"']/g, (letter) => escapes[letter]).replace(/[\ud800-\udfff](?![\udc00-\udfff])/g, "\ufffd");
const inXml = (text) => escaped(text).replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, "");
const round = (x) => Math.round(x * 100) / 100;

/** The picture as an SVG document: shapes and texts only. */
export function svgText({ width, height, shapes, title }) {
  const drawn = shapes.map((one) => {
    if (one.kind === "rect") {
      return `<rect x="${round(one.x)}" y="${round(one.y)}" width="${round(one.width)}" height="${round(one.height)}" fill="rgb(${one.fill})" fill-opacity="${round(one.opacity)}"/>`;
    }
    if (one.kind === "line") {
      const dash = one.dashed ? ' stroke-dasharray="2 3"' : "";
      return `<line x1="${round(one.x)}" x2="${round(one.x + one.width)}" y1="${round(one.y)}" y2="${round(one.y)}" stroke="${INK}" stroke-width="2"${dash}/>`;
    }
    const weight = one.weight ? ` font-weight="${one.weight}"` : "";
    const slant = one.slanted ? ' font-style="italic"' : "";
    return `<text x="${round(one.x)}" y="${round(one.y)}" font-size="${one.size}"${weight}${slant} fill="${one.fill}" textLength="${round(one.width)}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">${inXml(one.text)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${escaped(FONT)}">`,
    `<title>${inXml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${PAPER}"/>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

/** The picture on a canvas, twice as fine as the screen's pixels. */
export function canvasOf({ width, height, shapes }) {
  const canvas = document.createElement("canvas");
  const scale = height > 8000 ? 1 : 2;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = PAPER;
  pen.fillRect(0, 0, width, height);
  for (const one of shapes) {
    if (one.kind === "rect") {
      pen.fillStyle = `rgba(${one.fill},${one.opacity})`;
      pen.fillRect(one.x, one.y, one.width, one.height);
    } else if (one.kind === "line") {
      pen.strokeStyle = INK;
      pen.lineWidth = 2;
      pen.setLineDash(one.dashed ? [2, 3] : []);
      pen.beginPath();
      pen.moveTo(one.x, one.y);
      pen.lineTo(one.x + one.width, one.y);
      pen.stroke();
    } else {
      pen.fillStyle = one.fill;
      pen.font = fontOf(one);
      pen.fillText(one.text, one.x, one.y);
    }
  }
  return canvas;
}

export function saveSvg(picture) {
  download("explanation.svg", "image/svg+xml", svgText(picture));
}

export function savePng(picture) {
  canvasOf(picture).toBlob((blob) => download("explanation.png", "image/png", blob), "image/png");
}

/** What stands alone: the style is that of this page, and so is its hash in the policy. */
export function pageOf(title, content) {
  const style = document.querySelector("style").textContent;
  const given = document.querySelector('meta[http-equiv="Content-Security-Policy"]').content;
  const policy = `default-src 'none'; ${given.match(/style-src [^;]*/)[0]}; base-uri 'none'; form-action 'none'`;
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.lang = "en";
  page.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
    h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    h("style", null, style),
  );
  page.body.append(h("main", null, content));
  return `<!DOCTYPE html>\n${page.documentElement.outerHTML}\n`;
}
