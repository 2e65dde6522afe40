// Numbers and names as the other pages of keytokens write them (keytokens/explain/format.py).

const LONGEST_NAME = 60;
const NO_GLYPH =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|(?![\ud800-\udbff][\udc00-\udfff])[\ud800-\udbff]|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The same text, as long as before, with U+FFFD for what has no glyph and a line feed for each line end. */
export function clean(text) {
  return text.replace(NO_GLYPH, "\ufffd").replace(/\r\n/g, " \n").replace(/\r/g, "\n");
}

/** Clean, on one line, and not too long. */
export function oneLine(text, longest = LONGEST_NAME) {
  const some = text.length > 4 * longest ? text.slice(0, 4 * longest) : text;
  const letters = Array.from(clean(some).replace(/\s/g, " "));
  return letters.length <= longest ? letters.join("") : `${letters.slice(0, longest - 1).join("")}…`;
}

const minus = (written) => written.replace("-", "\u2212");

/** Three decimals, more for what is small and fewer for what is large, with a sign. */
export function signed(x) {
  if (x === 0) return "0.000";
  const size = Math.abs(x);
  let written;
  if (size < 0.0095) written = x.toPrecision(2);
  else written = x.toFixed(size >= 10 ? 1 : 3);
  return minus(x > 0 ? `+${written}` : written);
}

/** A number that is not negative: four decimals, more for what is small. */
export function figure(x) {
  return x >= 0.00095 || x === 0 ? x.toFixed(4) : x.toPrecision(2);
}

/** Three decimals; what is neither 0 nor 1 does not look as if it were. */
export function chance(p) {
  if (p > 0 && p < 0.001) return "< 0.001";
  return p > 0.999 && p < 1 ? "> 0.999" : p.toFixed(3);
}

export const lowEnd = (p) => (Math.floor(p * 1000) / 1000).toFixed(3);
export const highEnd = (p) => (Math.ceil(p * 1000) / 1000).toFixed(3);
export const whole = (n) => n.toLocaleString("en-GB");
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

export function several(n, one, many = `${one}s`) {
  return `${whole(n)} ${n === 1 ? one : many}`;
}
