// The ink on a text: how much each word, and each gap inside an n-gram, speaks for or against.

export const LEVELS = 8; // shades of each side

/**
 * {word, gap}: per word (gap: what stands before it) ink per character for `label` against `rival`, and whether it is
 * in one of the two sets of words: `kept` fixes the label, without `gone` it changes.
 */
export function marksOf(e, { label, rival, kept = [], gone = [] }) {
  const n = e.words.length;
  const made = () => ({
    ink: new Float64Array(n),
    known: new Uint8Array(n),
    kept: setOf(n, kept),
    gone: setOf(n, gone),
  });
  const marks = { word: made(), gap: { ...made(), kept: new Uint8Array(n), gone: new Uint8Array(n) }, most: 0 };
  const { first, size, token, occurrences } = e.read;
  const lead = e.against(rival, label);
  e.uses.forEach((use, o) => {
    const ink = lead[token[o]] / occurrences[token[o]] / (use.end - use.start);
    for (let i = first[o]; i < first[o] + size[o]; i++) {
      for (const part of i > first[o] ? [marks.word, marks.gap] : [marks.word]) {
        part.ink[i] += ink;
        part.known[i] = 1;
      }
    }
  });
  for (let i = 0; i < n; i++)
    marks.most = Math.max(marks.most, Math.abs(marks.word.ink[i]), Math.abs(marks.gap.ink[i]));
  return marks;
}

function setOf(n, places) {
  const flags = new Uint8Array(n);
  for (const i of places) flags[i] = 1;
  return flags;
}

/** The shade of one word or gap, 0 for none. */
export function levelOf(part, i, most) {
  return most > 0 ? Math.min(LEVELS, Math.round((LEVELS * Math.abs(part.ink[i])) / most)) : 0;
}

/** The classes of one word or gap. */
export function markClasses(part, i, most) {
  const level = levelOf(part, i, most);
  const names = [part.known[i] ? "known" : ""];
  if (level > 0) names.push((part.ink[i] >= 0 ? "p" : "n") + level);
  if (part.kept[i]) names.push("kept");
  if (part.gone[i]) names.push("gone");
  return names.join(" ").trim();
}

/** The occurrences that cover word i. */
export function usesOver(e, i) {
  const { first, size } = e.read;
  return e.uses.filter((_, o) => first[o] <= i && i < first[o] + size[o]);
}
