// Text to words, as keytokens/text/words.py defines them. Places count UTF-16 units, as strings do here.

export const MASK = "\u2588"; // a hidden word: never a token, and no n-gram crosses it

const GAP = 0;
const LETTER = 1;
const BANG = 2;
const QUESTION = 3;
const SYMBOL = 4;
const MARK = 5;
const IDEOGRAPH = 6;
const TAG = /<\/?[A-Za-z][A-Za-z0-9-]*(?:[ \t\r\n\f/][^<>]*)?>|<!--[^<>]*-->/g;
const ASCII = /^[\x00-\x7f]*$/;

/** "gap.more" pairs in base 36 (see keytokens/text/alphabet.py) written into a table. */
function fillRanges(table, packed, kind) {
  let end = 0;
  for (const item of packed.split(" ")) {
    const [gap, more] = item.split(".");
    const first = end + parseInt(gap, 36);
    end = first + parseInt(more || "0", 36);
    table.fill(kind, first, end + 1);
  }
}

/** The class of every code point. Unicode 14, from the model: browsers know other versions. */
export function classTable(alphabet) {
  const table = new Uint8Array(0x110000);
  fillRanges(table, alphabet.letters, LETTER);
  fillRanges(table, alphabet.ideographs, IDEOGRAPH);
  fillRanges(table, alphabet.symbols, SYMBOL);
  fillRanges(table, alphabet.marks, MARK);
  table[MASK.codePointAt(0)] = SYMBOL;
  table["!".codePointAt(0)] = BANG;
  table["?".codePointAt(0)] = QUESTION;
  return table;
}

/** Every word: {start, end, form}; the form of a mask is null. */
export function readWords(text, table) {
  const plain = text.includes("<") ? text.replace(TAG, (tag) => " ".repeat(tag.length)) : text;
  const words = [];
  let start = -1; // of the run that is open
  let kind = GAP; // of that run
  let base = GAP; // class of the last character that is no mark
  const close = (end) => {
    if (kind !== GAP) words.push({ start, end, form: formOf(text.slice(start, end)) });
  };
  for (let i = 0; i < plain.length;) {
    const code = plain.codePointAt(i);
    let own = table[code];
    let inside = false;
    if (own === MARK) {
      // a mark belongs to the letter or ideograph before it, and to nothing else
      inside = base === LETTER || base === IDEOGRAPH;
      own = inside ? base : GAP;
    } else {
      base = own;
    }
    const alone = (own === SYMBOL || own === IDEOGRAPH) && !inside;
    if (own !== kind || alone) {
      close(i);
      start = i;
      kind = own;
    }
    i += code > 0xffff ? 2 : 1;
  }
  close(plain.length);
  return words;
}

/** The form under which a word is known: lower case, composed. */
function formOf(word) {
  if (word === MASK) return null;
  return ASCII.test(word) ? word.toLowerCase() : word.toLowerCase().normalize("NFC");
}
