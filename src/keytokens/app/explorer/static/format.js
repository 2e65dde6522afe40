// Numbers and names as the other pages of keytokens write them (keytokens/explain/format.py).

const LONGEST_NAME = 60;
const NO_GLYPH =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|(?![\ud800-\udbff][\udc00-\udfff])[\ud800-\udbff]|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The same text, as long as before, with U+FFFD for what has no glyph and a line feed for each line end. */
export function clean(text) {
  return text.replace(NO_GLYPH, "\ufffd").replace(/\r\n/g, " \n").replace(/\r/g, "\n");
}

/** Line breaks as they are meant: raw `<br />` is one. */
export function broken(text) {
  return text.replace(/<br\s*\/?>/gi, "\n");
}

/** Clean, on one line, and not too long. */
export function oneLine(text, longest = LONGEST_NAME) {
  const some = text.length > 4 * longest ? text.slice(0, 4 * longest) : text;
  const letters = Array.from(broken(clean(some)).replace(/\s/g, " "));
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

/** Two decimals with a sign, for bars; the size of what is smaller shows in the details. */
export function shortly(x) {
  const written = x.toFixed(2);
  if (/^-?0\.00$/.test(written)) return "0.00";
  return minus(x > 0 ? `+${written}` : written);
}

/** A number that is not negative: four decimals, more for what is small. */
export function figure(x) {
  return x >= 0.00095 || x === 0 ? x.toFixed(4) : x.toPrecision(2);
}

export const lowEnd = (p) => (Math.floor(p * 1000) / 1000).toFixed(3);
export const highEnd = (p) => (Math.ceil(p * 1000) / 1000).toFixed(3);
export const whole = (n) => n.toLocaleString("en-GB");

/** A share in percent; what is neither nothing nor all does not look as if it were. */
export function percent(share) {
  if (share > 0.999 && share < 1) return "> 99.9\u00a0%";
  if (share > 0 && share < 0.001) return "< 0.1\u00a0%";
  const fine = (share > 0.99 && share < 1) || (share > 0 && share < 0.01);
  return `${(100 * share).toFixed(fine ? 1 : 0)}\u00a0%`;
}

export function several(n, one, many = `${one}s`) {
  return `${whole(n)} ${n === 1 ? one : many}`;
}
